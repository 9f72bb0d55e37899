/** The kinds of the program: a new one is a line in its folder's index. src/plugins.ts adds those of plug-ins. */
import { analysts } from './analyst';
import type { AnalystKind } from './analyst/analyst';
import { environments } from './environments';
import type { EnvironmentKind } from './environments/kinds';
import { routers } from './routing';
import type { RouterKind } from './routing/router';
import { synthesizers } from './synthesis';
import type { SynthesizerKind } from './synthesis/synthesizer';
import { arms } from './arms';
import type { ArmKind } from './arms/arm';

export interface Registry {
  /** NAME@VERSION of each plug-in whose kinds are among these. */
  plugins: readonly string[];
  environments: readonly EnvironmentKind[];
  analysts: readonly AnalystKind[];
  synthesizers: readonly SynthesizerKind[];
  routers: readonly RouterKind[];
  arms: readonly ArmKind[];
}

export const registry: Registry = { plugins: [], environments, analysts, synthesizers, routers, arms };

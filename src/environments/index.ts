/** The kinds of environments: a new one is a file beside this and a line here. */
import { agent } from './agent/kind';
import { harbor } from './agent/harbor';
import { verifiers } from './agent/verifiers';
import { builtin } from './builtin';
import { openenv } from './openenv';
import type { EnvironmentKind } from './kinds';
import { processKind } from './process';
import { mixture, sandbox } from './synthesized';
import { tau2, toolsandbox } from './benchmarks';

export const environments: readonly EnvironmentKind[] = [
  builtin,
  processKind,
  agent,
  verifiers,
  harbor,
  tau2,
  toolsandbox,
  openenv,
  sandbox,
  mixture,
];

/**
 * What a campaign holds of an environment: which kind, and its options (src/environments has the kinds). Invariant: the specs of
 * environments that campaigns make are made here only; no campaign file can name one.
 */
import { z } from 'zod';
import { artifactRefSchema, type ArtifactRef } from './artifacts';
import type { KindSpec } from './kind';

export type EnvironmentSpec = KindSpec;

/** The kind of a synthesized environment: a module that runs in the sandbox. */
export const SANDBOX = 'sandbox';
/** The kind of several of them as one. */
export const MIXTURE = 'mixture';

/** A module of a mixture; `hints`: rollouts of it may be hinted. */
export const mixedModuleSchema = z.object({ module: artifactRefSchema, hints: z.boolean().default(false) });
export type MixedModule = z.infer<typeof mixedModuleSchema>;

export const sandboxSpec = (module: ArtifactRef): EnvironmentSpec => ({ kind: SANDBOX, module });

/** Task `<n>/seed-<k>` is seed k of the module at n. */
export const mixtureSpec = (modules: readonly MixedModule[]): EnvironmentSpec => ({ kind: MIXTURE, modules });

/** The modules of a synthesized environment; none of any other. */
export function modulesOf({ kind, module, modules }: EnvironmentSpec): ArtifactRef[] {
  if (kind === SANDBOX) return [artifactRefSchema.parse(module)];
  if (kind === MIXTURE)
    return z
      .array(mixedModuleSchema)
      .parse(modules)
      .map((one) => one.module);
  return [];
}

/**
 * What a campaign holds of an environment: which kind, and its options (src/environments has the kinds). Invariant: the spec of a
 * synthesized environment is made here only; no campaign file can name one.
 */
import { artifactRefSchema, type ArtifactRef } from './artifacts';
import type { KindSpec } from './kind';

export type EnvironmentSpec = KindSpec;

/** The kind of a synthesized environment: a module that runs in the sandbox. */
export const SANDBOX = 'sandbox';

export const sandboxSpec = (module: ArtifactRef): EnvironmentSpec => ({ kind: SANDBOX, module });

/** The module of a synthesized environment; undefined for any other. */
export const moduleOf = ({ kind, module }: EnvironmentSpec): ArtifactRef | undefined =>
  kind === SANDBOX ? artifactRefSchema.parse(module) : undefined;

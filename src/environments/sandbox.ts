/** Synthesized environments: a module that a campaign has stored. */
import { artifactRefSchema } from '../domain/artifacts';
import { defineKind, SANDBOX } from '../domain/kinds';
import { openSandboxEnvironment } from '../sandbox/sandbox-environment';
import type { EnvironmentContext, EnvironmentKind } from './kinds';

export const sandbox: EnvironmentKind = {
  ...defineKind({
    kind: SANDBOX,
    version: '1',
    options: { module: artifactRefSchema },
    open: ({ module }, _identity, { store }: EnvironmentContext) => openSandboxEnvironment({ module, store }),
  }),
  internal: true,
};

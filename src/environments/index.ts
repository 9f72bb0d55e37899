/** The kinds of environments: a new one is a file beside this and a line here. */
import { agent } from './agent/kind';
import { verifiers } from './agent/verifiers';
import type { EnvironmentKind } from './kinds';
import { processKind } from './process';
import { mixture, sandbox } from './synthesized';
import { tau2, toolsandbox } from './benchmarks';

export const environments: readonly EnvironmentKind[] = [
  processKind,
  agent,
  verifiers,
  tau2,
  toolsandbox,
  sandbox,
  mixture,
];

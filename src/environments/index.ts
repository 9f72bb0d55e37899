/** The kinds of environments: a new one is a file beside this and a line here. */
import { tau2 } from './benchmarks/tau2';
import { toolsandbox } from './benchmarks/toolsandbox';
import { builtin } from './builtin';
import type { EnvironmentKind } from './kinds';
import { mixture } from './mixture';
import { processKind } from './process-kind';
import { sandbox } from './sandbox';

export const environments: readonly EnvironmentKind[] = [builtin, processKind, tau2, toolsandbox, sandbox, mixture];

/** The kinds of arms: a new one is a file beside this, a line here and a function in src/workflows/arm.ts. */
import type { ArmKind } from './arm';
import { environments } from './environments';
import { gepa } from './gepa';
import { grpoTarget } from './grpo-target';

export const arms: readonly ArmKind[] = [grpoTarget, environments, gepa];

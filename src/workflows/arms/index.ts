/** The kinds of arms. A new kind is a file in this folder and a line here. */
import type { ArmKind } from './arm';
import { environments } from './environments';
import { gepa } from './gepa';
import { grpoTarget } from './grpo-target';

export const arms: readonly ArmKind[] = [grpoTarget, environments, gepa];

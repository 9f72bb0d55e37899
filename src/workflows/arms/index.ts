/** The kinds of arms: a new one is a file beside this and a line here. */
import type { ArmKind } from './arm';
import { environments } from './environments';
import { gepa } from './gepa';
import { grpoSingle, grpoTarget, joint } from './grpo';
import { sft } from './sft';

export const arms: readonly ArmKind[] = [grpoTarget, grpoSingle, joint, sft, environments, gepa];

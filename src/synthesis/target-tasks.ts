/**
 * Synthesizer `target_tasks`: the environment of a capability is the target itself, on train tasks that were labelled LACKING and PRESENT
 * (`chooseTasks`). It is the ablation that shows what synthesized environments add.
 */
import { defineKind, TARGET_TASKS } from '../domain/kinds';
import { cannotSynthesize, type SynthesizerKind } from './synthesizer';

const writesNothing = () => Promise.reject(cannotSynthesize('target_tasks writes no module'));

export const targetTasks: SynthesizerKind = defineKind({
  kind: TARGET_TASKS,
  version: '1',
  options: {},
  open: (_options, identity) => ({ identity, write: writesNothing, revise: writesNothing }),
});

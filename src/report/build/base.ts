/**
 * What the base model does on the train tasks that it was rolled out on: figures, by group where tasks have groups, and three conversations.
 * Invariant: which conversations is decided by the batch alone.
 */
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import type { Task } from '../../domain/environment';
import { policyNames } from '../../domain/policies';
import type { ReportDraft } from '../../domain/report';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { readRollouts, readTaskMeans } from '../../rollout/read';
import { rateFigure, rewardFigure, type Level } from './figures';
import { groupsOf } from './groups';
import { episodeOf } from './quotes';

const CONVERSATIONS = 3;
const ID = 'base_rollouts';

export async function baseOf(o: {
  store: ArtifactStore;
  ref: ArtifactRef;
  /** Of the target's train split. */
  tasks: readonly Task[];
  level: Level;
}): Promise<Pick<ReportDraft, 'base'>> {
  const { store, ref, tasks, level } = o;
  const means = await readTaskMeans(store, ref);
  const columns = new Map([[policyNames.base, means]]);
  // The last one is all tasks.
  const groups = groupsOf({ columns, tasks, level, id: `${ID}.groups` }).groups?.slice(0, -1);
  return {
    base: {
      successRate: rateFigure({ id: `${ID}.success_rate`, means, level }),
      meanReward: rewardFigure({ id: `${ID}.mean_reward`, means, level }),
      ...(groups && { groups }),
      conversations: (await chosen(store, ref)).map(episodeOf),
    },
  };
}

/** A success, a failure and one that ended otherwise, the first of each; where there are fewer kinds, more of them in turn. */
async function chosen(store: ArtifactStore, ref: ArtifactRef): Promise<ScoredRollout[]> {
  const kinds = new Map<string, ScoredRollout[]>([['success', []]]);
  for await (const rollout of readRollouts({ store, ref })) {
    if (rollout.status !== 'scored' || rollout.messages.length === 0) continue;
    const kind = isSuccess(rollout) ? 'success' : rollout.reward > 0 ? 'in part' : rollout.stopReason;
    const known = kinds.get(kind) ?? [];
    if (known.length < CONVERSATIONS) kinds.set(kind, [...known, rollout]);
  }
  const turns = Array.from({ length: CONVERSATIONS }, (_, n) => [...kinds.values()].flatMap((known) => known[n] ?? []));
  return turns.flat().slice(0, CONVERSATIONS);
}

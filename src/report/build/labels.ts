/**
 * What the labeling passes say of single trajectories: whether it lacks a capability, which message shows it, and whether it is no fault of
 * the agent's. Invariant: a trajectory counts for a pass only if that pass looked at it.
 */
import { beginningOf, commonest, type Fault, type LabelPass } from '../../domain/capability';

type Labels = LabelPass['labels'][string];

const holds = (labels: Labels, id: string): boolean => Object.values(labels).some((list) => list.includes(id));

export interface Lacking {
  rollout: string;
  message?: number;
  reason: string;
  lacking: number;
  passes: number;
  citing: number;
}

/** Of a failed trajectory: how many passes label it LACKING, and why. Undefined where no pass gives a reason. */
export function lackingOf(passes: readonly LabelPass[], capability: string, id: string): Lacking | undefined {
  const looking = passes.flatMap((pass) => {
    const labels = pass.labels[capability];
    return labels && holds(labels, id) ? [{ labels, reason: pass.reasons?.[capability]?.[id] }] : [];
  });
  const lacking = looking.filter(({ labels }) => labels.lacking_failed.includes(id));
  const reasons = lacking.flatMap(({ reason }) => (reason ? [reason] : []));
  const step = commonest(reasons.flatMap((reason) => reason.message ?? []));
  const message = step?.message;
  const told = reasons.find((reason) => reason.message === message);
  if (!told) return undefined;
  return {
    rollout: id,
    ...(message !== undefined && { message }),
    reason: told.reason,
    lacking: lacking.length,
    passes: looking.length,
    citing: step?.votes ?? 0,
  };
}

export interface FaultVotes {
  rollout: string;
  of: Fault['of'];
  reason: string;
  votes: number;
  passes: number;
}

/** Failed trajectories that the passes put down to the environment or the user more often than to the agent, sorted as text. */
export function faultyTrajectories(passes: readonly LabelPass[]): FaultVotes[] {
  const ids = new Set(passes.flatMap(({ failures = {} }) => Object.keys(failures)));
  return [...ids].sort().flatMap((rollout): FaultVotes[] => {
    const told = passes.flatMap(({ failures }) => failures?.[rollout] ?? []);
    const found = beginningOf(told);
    if (!found || found.of === 'agent') return [];
    return [{ rollout, of: found.of, reason: found.reason, votes: found.blaming, passes: told.length }];
  });
}

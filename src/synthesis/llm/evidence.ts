/**
 * The real attempts that show a capability, as prompts tell them. Invariant: those that were cited or named as examples come first; others
 * stand in only where none are named, and are said to.
 */
import type { Candidate } from '../../domain/capability';
import { compact, shortIds } from '../../domain/transcript';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';

/** `rollouts`: those that may be shown, in the order of tasks. */
export function evidenceText(o: {
  candidate: Candidate;
  rollouts: readonly ScoredRollout[];
  failures: number;
  successes: number;
}): string {
  const { candidate, rollouts } = o;
  const cited = candidate.citations ?? [];
  const named = new Set([...cited.map(({ rollout }) => rollout), ...candidate.examples]);
  const known = rollouts.filter(({ key }) => named.has(key));
  const place = ({ key }: ScoredRollout): number => [...named].indexOf(key);
  const from = known.length > 0 ? known.sort((a, b) => place(a) - place(b)) : rollouts;
  const chosen = [
    ...from.filter((rollout) => !isSuccess(rollout)).slice(0, o.failures),
    ...from.filter(isSuccess).slice(0, o.successes),
  ];
  if (chosen.length === 0) return '(no attempt may be shown)';
  const ids = shortIds(chosen);
  const steps = cited.flatMap(({ rollout, message, says, verbatim }) =>
    ids.has(rollout) ? [`- ${ids.get(rollout)}.${message}: ${verbatim ?? says}`] : [],
  );
  return [
    ...(known.length > 0 ? [] : ['(none was named for this capability; these are any attempts at the target)', '']),
    ...(steps.length > 0 ? ['What was noticed in them:', ...steps, ''] : []),
    compact({ rollouts: chosen, ids }),
  ].join('\n');
}

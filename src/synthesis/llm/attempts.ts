/**
 * What the policy did with a module's instances, as its writer is told: which of them are solved, in what words they ask, and a few attempts
 * themselves. Invariant: a function of the rollouts alone; who mends a module sees what fails, and not only how often.
 */
import { byTask, compact, cut, shortIds } from '../../domain/transcript';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';

/** Instances that are listed: as many as the preset `small-model` calibrates with. */
const INSTANCES = 24;
/** Of a first message, in characters. */
const OPENING = 240;
/** Attempts that are shown of each branch: failed ones, and solved ones. */
const SHOWN = { failed: 2, solved: 1 };
/** Of each of these, in characters: with the lines of the instances some thousand tokens in all. */
const ATTEMPT = 1_500;

export function attemptsText(rollouts: readonly ScoredRollout[]): string {
  const sorted = [...rollouts].sort(byTask);
  const tasks = [...new Set(sorted.map(({ task }) => task))];
  const instances = tasks.map((task) => sorted.filter((one) => one.task === task));
  const listed = instances.slice(0, INSTANCES).map(instanceText);
  const more = instances.length - listed.length;
  const branches = [...new Set(sorted.map(({ branch }) => branch))].sort();
  const chosen = branches.flatMap((branch) => {
    const own = sorted.filter((one) => one.branch === branch);
    // Of as many instances as there are.
    const apart = (some: ScoredRollout[]) => [...new Map(some.map((one) => [one.task, one])).values()];
    return [
      ...apart(own.filter((one) => !isSuccess(one))).slice(0, SHOWN.failed),
      ...apart(own.filter(isSuccess)).slice(0, SHOWN.solved),
    ];
  });
  const ids = shortIds(chosen);
  return [
    'The instances, how often they were solved, and how the user begins:',
    '',
    ...listed,
    ...(more > 0 ? [`- and ${more} more`] : []),
    '',
    'Some of these attempts:',
    '',
    chosen.map((rollout) => cut(compact({ rollouts: [rollout], ids }), ATTEMPT)).join('\n\n'),
  ].join('\n');
}

function instanceText(attempts: readonly ScoredRollout[]): string {
  const [{ task, branch, messages } = attempts[0]!] = attempts;
  const solved = attempts.filter(isSuccess).length;
  const mean = attempts.reduce((sum, { reward }) => sum + reward, 0) / attempts.length;
  const first = messages.find(({ role }) => role === 'user')?.content ?? '';
  const name = branch === undefined ? task : `${task}, \`${branch}\``;
  return `- ${name}: ${solved} of ${attempts.length}, mean reward ${mean.toFixed(2)}: ${JSON.stringify(cut(first, OPENING))}`;
}

/** Formats the findings on a module for the model that revises it. Advice on difficulty follows the method (step 2). */
import type { CalibrationReport, Measures, RoundFeedback } from '../../domain/calibration';
import { plainLine } from '../../domain/plain-text';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { byTask, compact, cut, shortIds } from '../../domain/transcript';

const EASIER = [
  'make instances smaller: fewer records, fewer steps, fewer rules at once, a more direct first message',
  'clarify what the policy asks for here, and what the user means',
  'give credit in more levels on the way to success, so that attempts at one instance differ in reward',
  'where the capability has several parts, keep to one of them',
].map((way) => `- ${way};`);
const HARDER = [
  'add a constraint of the policy that has to be held in mind at the same time',
  'add steps: more look-ups before the decision, more than one thing asked for',
  'add ambiguity that a look-up or a question resolves, and decoys: records that are nearly right, facts that are true and not asked for',
  'let more instances call for the capability, and take out what gives the right choice away in the first message',
].map((way) => `- ${way};`);
const CONTRAST = [
  'attempts at one instance should end differently: too many instances are always solved, or never',
  'bring the instances of different branches nearer to each other in difficulty: make the easy ones harder and the hard ones easier',
  'give credit in more levels between 0 and 1, each for a step that some attempts take and others do not',
].map((way) => `- ${way};`);

export function foundText({ findings, rejection, calibration }: RoundFeedback): string {
  if (findings.length > 0) return ['The self-test did not pass:', '', ...findings.map((one) => `- ${one}`)].join('\n');
  if (rejection !== undefined)
    return [
      'The self-test passed, and the environment is within the bands. A person then read the module and rejected it, in these words:',
      '',
      ...rejection.split('\n').map((line) => `> ${line}`),
      ...(calibration ? ['', 'What the attempts of the base model came to:', ...figures(calibration)] : []),
    ].join('\n');
  if (!calibration) return 'It was sent back without a finding.';
  return [
    'The self-test passed. The base model then attempted the instances, several times each, and the environment is not within the bands:',
    '',
    ...calibration.reasons.map((one) => `- ${one}`),
    '',
    ...figures(calibration),
  ].join('\n');
}

const figures = (report: CalibrationReport): string[] => [
  `Over all instances: ${measured(report)}.`,
  ...Object.entries(report.branches ?? {}).map(([name, of]) => `Over the instances of \`${name}\`: ${measured(of)}.`),
  ...(report.judged ? [`Judged were the instances of ${report.judged.branches.join(', ')} alone.`] : []),
];

const measured = (of: Measures): string =>
  `success rate ${percent(of.successRate)}, mean reward ${of.meanReward.toFixed(2)}; ${percent(of.allSuccess)} of the instances were ` +
  `always solved, ${percent(of.allZero)} never got any reward, ${percent(1 - of.informative)} gave all attempts the same reward`;
const percent = (share: number): string => `${(100 * share).toFixed(0)}%`;

export function adviceText({ findings, rejection, calibration }: RoundFeedback): string {
  if (findings.length === 0 && rejection !== undefined)
    return [
      'Say what the person means before you change anything, then mend it wherever the module has this fault. What they did not object to stays as it is.',
      'The difficulty was right: what you change should leave the figures about where they are.',
    ].join('\n');
  if (findings.length > 0 || !calibration)
    return [
      'Find the cause of each finding before you change anything; several may have one cause. What the findings do not touch stays as it is.',
      'A policy that must not pay and does shows what the reward does not see: let the reward see it, or mix in twins on which it is wrong. Do not special-case the policy that was named.',
    ].join('\n');
  return [
    ...ways[calibration.verdict],
    '',
    'Turn one or two things, by as much as the figures are off; the capability stays what the environment is about.',
  ].join('\n');
}

const ways: Record<CalibrationReport['verdict'], string[]> = {
  too_easy: [
    'It is too easy: the base model can do it already. Ways to make it harder, by what the figures say:',
    ...HARDER,
  ],
  too_hard: [
    'It is too hard: the base model hardly ever gets there. Ways to make it easier, by what the figures say:',
    ...EASIER,
  ],
  too_little_contrast: ['Too few instances tell better attempts from worse ones. Ways to mend it:', ...CONTRAST],
  accepted: ['Change as little as the above asks for.'],
};

/** Instances that are listed: as many as the preset `small-model` calibrates with. */
const INSTANCES = 24;
const OPENING = 240;
/** Attempts that are shown of each branch: failed ones, and solved ones. */
const SHOWN = { failed: 2, solved: 1 };
/** Characters of each shown attempt: with the lines of the instances, a few thousand tokens in all. */
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
    // One attempt of each instance.
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
  const name = branch === undefined ? plainLine(task) : `${plainLine(task)}, \`${branch}\``;
  return `- ${name}: ${solved} of ${attempts.length}, mean reward ${mean.toFixed(2)}: ${JSON.stringify(cut(first, OPENING))}`;
}

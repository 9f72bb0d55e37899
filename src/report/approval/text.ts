/** What waits for approval, on a terminal: enough to decide; the page has the whole. */
import { wrap } from '../../terminal';
import type { CalibrationReport } from '../../domain/calibration';
import type { ReportedCitation, ReportedMessage } from '../capability-model';
import { percent } from '../format';
import { hintsText } from '../adapters';
import type { ApprovalView, CapabilityView, EnvironmentView } from './build';

/** Characters of a message, lines of a diff, messages of an episode. */
const SHORT = { message: 240, diff: 60, episode: 12 };

/** Text from models is in it: whoever prints it takes out what moves a cursor. */
export const approvalText = (view: ApprovalView): string =>
  ('capabilities' in view ? view.capabilities.map(capabilityText) : [environmentText(view.environment)]).join('\n\n');

const capabilityText = (view: CapabilityView): string =>
  [
    view.candidate.name,
    ...wrapped(view.candidate.definition),
    `  ${figuresText(view)}`,
    ...view.citations.flatMap(citationLines),
  ].join('\n');

/** `9 of 10 votes, Cov 0.42 ± 0.05, Delta 0.31 ± 0.04`. */
export function figuresText({ votes, passes, coverage, delta }: CapabilityView): string {
  if (!coverage || !delta) return 'selected by the analyst outright: nothing was labeled';
  const figure = ({ mean, std }: { mean: number; std: number }) => `${mean.toFixed(2)} ± ${std.toFixed(2)}`;
  return `${votes} of ${passes} votes, Cov ${figure(coverage)}, Delta ${figure(delta)}`;
}

/** `task 12, attempt 0, failed, message 4`. */
export const placeText = ({ rollout, task, attempt, outcome, message }: ReportedCitation): string =>
  [
    task === undefined ? `trajectory ${rollout}` : `task ${task}, attempt ${attempt}`,
    outcome,
    message !== undefined && `message ${message}`,
  ]
    .filter(Boolean)
    .join(', ');

const citationLines = (citation: ReportedCitation): string[] => [
  `  - ${citation.says} (${placeText(citation)})`,
  ...citation.context.map((message) => `      ${message.message === citation.message ? '>' : ' '} ${line(message)}`),
];

/** Its mean reward and the like, with what they must be within. */
export function calibrationText({
  meanReward,
  successRate,
  allZero,
  allSuccess,
  informative,
}: CalibrationReport): string {
  const shares = { success: successRate, 'all-zero': allZero, 'all-success': allSuccess, informative };
  const parts = Object.entries(shares).map(([name, share]) => `${name} ${percent(share)}`);
  return [`mean reward ${meanReward.toFixed(2)}`, ...parts].join(', ');
}

function environmentText(view: EnvironmentView): string {
  const { candidate, round, version, calibration, episodes, earlier } = view;
  const { changes, rationale, lines } = version;
  const diff = changes?.lines.slice(0, SHORT.diff) ?? [];
  const left = (changes?.lines.length ?? 0) - diff.length + (changes?.missing ?? 0);
  return [
    `${candidate.name}, round ${round}: ${lines} lines`,
    ...wrapped(candidate.definition),
    ...(rationale === undefined ? [] : wrapped(`rationale: ${rationale}`)),
    ...(calibration
      ? [`  ${['base model', hintsText(view)].filter(Boolean).join(', ')}: ${calibrationText(calibration)}`]
      : []),
    ...earlier.map((one) => `  round ${one.round}: ${one.said}`),
    ...(changes ? [`  changes to the round before: +${changes.added} -${changes.removed}`] : []),
    ...diff.map((one) => `    ${one}`),
    ...(left > 0 ? [`    ... ${left} more lines`] : []),
    ...episodes.flatMap(({ task, reward, hinted, messages, missing = 0 }) => {
      const shown = messages.slice(0, SHORT.episode);
      const more = messages.length - shown.length + missing;
      return [
        `  ${task}: reward ${reward.toFixed(2)}${hinted ? ', shown the hint' : ''}`,
        ...shown.map((message) => `      ${line(message)}`),
        ...(more > 0 ? [`      ... ${more} more messages`] : []),
      ];
    }),
  ].join('\n');
}

function line({ role, text, missing = 0 }: ReportedMessage): string {
  const whole = text.replace(/\s+/g, ' ');
  const left = whole.length - SHORT.message + missing;
  return `${role}: ${left > 0 ? `${whole.slice(0, SHORT.message)}... (${left} more characters)` : whole}`;
}

const WIDTH = 100;
const wrapped = (text: string): string[] => wrap(text.replace(/\s+/g, ' '), WIDTH).map((line) => `  ${line}`);

/** The base model on a terminal, where a campaign stopped after its rollouts. Invariant: what is left out of a conversation is said. */
import type { Report } from './model';
import type { ReportedEpisode, ReportedMessage } from './capability-model';
import { roles } from './conversation';
import { MISSING, shortPercent, shortSha, spreadText, valueText, visible, wholeNumber } from './format';
import { align, clip, wrap } from './terminal-columns';

type Base = NonNullable<Report['base']>;

/** Messages of a conversation at its beginning and its end, and characters of one. */
const [FIRST, LAST] = [7, 3];
const CHARACTERS = 400;

/** Conversations first: what counts is seen without scrolling. */
export const baseLines = ({ base, campaign }: Report, width: number): string[] =>
  base === undefined || campaign.stage !== 'rollouts'
    ? []
    : [...base.conversations.flatMap((one) => ['', ...conversationLines(one, width)]), '', ...figureLines(base, width)];

function figureLines({ successRate, meanReward, groups = [] }: Base, width: number): string[] {
  const level = successRate.interval?.level;
  const rows = groups.map(({ group, tasks, arms: [one] }) => [
    group,
    wholeNumber(tasks),
    ...[one?.successRate, one?.meanReward].map((figure) => (figure ? valueText(figure) : MISSING)),
  ]);
  return [
    ...align(
      {
        rows: [
          ['base model, train tasks', 'n', 'value', level === undefined ? '' : `${shortPercent(level)} interval`],
          ...(
            [
              ['solved', successRate],
              ['mean reward', meanReward],
            ] as const
          ).map(([name, figure]) => [name, wholeNumber(figure.n), valueText(figure), spreadText(figure) ?? MISSING]),
        ],
        widths: [30, 9, 8, 14],
        right: [1, 2],
        spare: [],
      },
      width,
    ),
    ...(rows.length === 0
      ? []
      : align(
          {
            rows: [['group', 'tasks', 'solved', 'mean reward'], ...rows],
            widths: [30, 9, 8, 11],
            right: [1, 2, 3],
            spare: [],
          },
          width,
        )),
  ];
}

/** As much of a conversation as is read in passing: its `missing` messages are those that stand between two or after the last. */
export function shortEpisode({ messages, missing = 0, ...one }: ReportedEpisode): ReportedEpisode {
  const isLong = messages.length > FIRST + LAST + 1;
  const kept = isLong ? [...messages.slice(0, FIRST), ...messages.slice(-LAST)] : messages;
  const left = messages.length - kept.length + missing;
  return { ...one, messages: kept.map(shortMessage), ...(left > 0 && { missing: left }) };
}

function shortMessage({ text, missing = 0, ...message }: ReportedMessage): ReportedMessage {
  const seen = visible(text);
  const more = Math.max(0, seen.length - CHARACTERS) + missing;
  // Never half of a character.
  const kept = seen.slice(0, CHARACTERS).replace(/[\uD800-\uDBFF]$/, '');
  return { ...message, text: kept, ...(more > 0 && { missing: more }) };
}

function conversationLines(episode: ReportedEpisode, width: number): string[] {
  const { rollout, task, outcome, reward, stopReason, messages, missing = 0 } = shortEpisode(episode);
  const name = outcome === 'passed' ? 'a success' : 'a failure';
  const head = `${name}: task ${task}, reward ${reward.toFixed(2)}, ended by ${stopReason.replaceAll('_', ' ')} (rollout ${shortSha(rollout)})`;
  let next = 0;
  const leftOut = (count: number): string[] =>
    count > 0 ? [clip(`  … ${wholeNumber(count)} messages are left out here …`, width)] : [];
  const shown = messages.flatMap((message) => {
    const gap = leftOut(message.message - next);
    next = message.message + 1;
    return [...gap, ...messageLines(message, width)];
  });
  return [...wrap(head, width), ...shown, ...leftOut(messages.length + missing - next)];
}

const ROLE = 8;

function messageLines({ role, text, missing = 0 }: ReportedMessage, width: number): string[] {
  const said = missing > 0 ? `${text} … ${wholeNumber(missing)} more characters` : text;
  const room = width - ROLE - 4;
  // What has no spaces, such as the arguments of a call, goes on in the next line.
  const lines = wrap(said.replaceAll(new RegExp(`\\S{${room - 2}}`, 'g'), '$& '), room);
  return lines.map((line, n) => `  ${(n === 0 ? roles[role] : '').padEnd(ROLE)}${line.trimEnd()}`.trimEnd());
}

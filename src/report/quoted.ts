/** Conversations and versions of modules as blocks, wherever they are shown. */
import type { ReportedCitation, ReportedEpisode, ReportedVersion } from './capability-model';
import { shortSha } from './format';
import { type Block, fold, type Line, paragraph, type Piece } from './section';

type Trajectory = Pick<ReportedCitation, 'rollout' | 'task' | 'attempt' | 'outcome'>;

/** `3ab0c1d2 task 12, attempt 0, failed, LACKING in 3 of 4 passes`. */
export const trajectoryPieces = (of: Trajectory, ...more: (string | undefined)[]): Piece[] => {
  const { rollout, task, attempt = 0, outcome } = of;
  const what =
    task === undefined ? ['not among the labeled rollouts'] : [`task ${task}`, `attempt ${attempt}`, outcome];
  return [{ lineage: [rollout] }, [...what, ...more].filter((part) => part !== undefined).join(', ')];
};

/** One line that opens to the messages; `also` is said of it behind the trajectory. */
export function citationBlock(citation: ReportedCitation, o: { also?: string; open?: boolean } = {}): Block {
  const { message, says, context } = citation;
  const place = message === undefined ? undefined : `message ${message}`;
  return fold(
    [says, { tone: 'quiet', text: '–' }, ...trajectoryPieces(citation, place, o.also)],
    [context.length > 0 && { kind: 'quote', messages: context, cited: message }],
    { open: o.open ?? false },
  );
}

export function episodeBlock(episode: ReportedEpisode): Block {
  const { rollout, task, outcome, reward, stopReason, hinted, messages, missing } = episode;
  const how = `reward ${reward.toFixed(2)}${hinted ? ', shown the hint' : ''}, ended by ${stopReason.replaceAll('_', ' ')}`;
  const summary: Line = [`${task}: ${outcome}, ${how}`, { code: shortSha(rollout) }];
  return fold(summary, [{ kind: 'quote', messages, missing }]);
}

/** What changed to the version before; nothing of a first one. */
export function diffBlocks({ changes }: ReportedVersion): Block[] {
  if (!changes) return [];
  if (changes.lines.length === 0) return [paragraph('the same as in the round before')];
  return [
    paragraph(`${changes.added} lines added, ${changes.removed} removed`, 'quiet'),
    { kind: 'diff', lines: changes.lines, missing: changes.missing },
  ];
}

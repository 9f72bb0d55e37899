/** What people read as evidence, wherever it is shown: cited steps, conversations, versions of modules. */
import type { ReportedCitation, ReportedEpisode, ReportedVersion } from '../capability-model';
import { type Block, fold, paragraph, type Piece } from '../blocks';

type Trajectory = Pick<ReportedCitation, 'rollout' | 'task' | 'attempt' | 'outcome' | 'message'>;

/** `3ab0c1d2 task 12, attempt 0, failed, message 4, LACKING in 3 of 4 passes`. */
export function trajectoryPieces(trajectory: Trajectory, ...more: (string | undefined)[]): Piece[] {
  const { rollout, task, attempt = 0, outcome, message } = trajectory;
  // A conversation that names no task is one of its own.
  const which = task === rollout ? [] : [`task ${task}`, `attempt ${attempt}`];
  const known = task === undefined ? ['not among the labeled rollouts'] : [...which, outcome];
  const at = message === undefined ? undefined : `message ${message}`;
  return [{ rollout, message }, [...known, at, ...more].filter(Boolean).join(', ')];
}

/** One line that opens to the messages; `also` is said of it behind the trajectory. */
export function citationBlock(
  citation: ReportedCitation,
  { also, open = false }: { also?: string; open?: boolean } = {},
): Block {
  const { message, says, context } = citation;
  return fold(
    [says, { tone: 'quiet', text: '–' }, ...trajectoryPieces(citation, also)],
    [context.length > 0 && { kind: 'quote', messages: context, cited: message }],
    { open },
  );
}

export function episodeBlock(episode: ReportedEpisode): Block {
  const { rollout, task, outcome, reward, stopReason, hinted, messages, missing } = episode;
  const how = `reward ${reward.toFixed(2)}${hinted ? ', shown the hint' : ''}, ended by ${stopReason.replaceAll('_', ' ')}`;
  return fold([`${task}: ${outcome}, ${how}`, { rollout }], [{ kind: 'quote', messages, missing }]);
}

/** What changed to the version before; nothing of a first one. */
export function diffBlocks({ changes }: ReportedVersion): Block[] {
  if (!changes) return [];
  const { added, removed, lines, missing } = changes;
  if (lines.length === 0) return [paragraph('the same as in the round before')];
  return [paragraph(`${added} lines added, ${removed} removed`, 'quiet'), { kind: 'diff', lines, missing }];
}

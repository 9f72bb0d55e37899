/** Cited steps of conversations as blocks. */
import type { ReportedCitation } from '../capability-model';
import { type Block, fold, type Piece } from '../blocks';

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

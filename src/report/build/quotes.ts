/**
 * Quotes of conversations in a report. Invariant: a quote is the text of the artifact; a long text is cut, and the quote says how much is missing.
 */
import { callText, type Message } from '../../domain/messages';
import { isSuccess, type Rollout, type ScoredRollout } from '../../domain/rollout';
import type { ReportedCitation, ReportedMessage } from '../capability-model';

/** The characters of a quoted message. */
const LONGEST = 8000;

/** The labeled rollouts: how many there are by outcome, and those that are quoted. */
export interface Labeled {
  failed: number;
  passed: number;
  quoted: ReadonlyMap<string, ScoredRollout>;
}

export type Rollouts = AsyncIterable<Rollout> | Iterable<Rollout>;

/** `keys`: of the rollouts that are quoted. */
export async function labeledOf(rollouts: Rollouts, keys: ReadonlySet<string>): Promise<Labeled> {
  const counts = { failed: 0, passed: 0 };
  const quoted = new Map<string, ScoredRollout>();
  for await (const rollout of rollouts) {
    if (rollout.status !== 'scored') continue;
    counts[outcomeOf(rollout)] += 1;
    if (keys.has(rollout.key)) quoted.set(rollout.key, rollout);
  }
  return { ...counts, quoted };
}

const outcomeOf = (rollout: ScoredRollout): 'failed' | 'passed' => (isSuccess(rollout) ? 'passed' : 'failed');

/** Which trajectory it is; of one that is not among the labeled ones, its key alone. */
export function trajectoryOf(
  rollout: string,
  { quoted }: Labeled,
): Pick<ReportedCitation, 'rollout' | 'task' | 'attempt' | 'outcome'> {
  const known = quoted.get(rollout);
  return known ? { rollout, task: known.task, attempt: known.attempt, outcome: outcomeOf(known) } : { rollout };
}

/** A step with the messages before and after it. */
export function citationOf(
  { rollout, message, says }: { rollout: string; message?: number | undefined; says: string },
  labeled: Labeled,
): ReportedCitation {
  const context = excerpt(labeled.quoted.get(rollout)?.messages ?? [], message);
  return { ...trajectoryOf(rollout, labeled), message, says, context };
}

/** A message and its neighbours; nothing of one that is not there. */
export function excerpt(
  messages: readonly Message[],
  around: number | undefined,
  { neighbours = 1, longest = LONGEST } = {},
): ReportedMessage[] {
  if (around === undefined || around >= messages.length) return [];
  const first = Math.max(0, around - neighbours);
  return messages.slice(first, around + neighbours + 1).map((message, n) => quotedMessage(message, first + n, longest));
}

export function quotedMessage(message: Message, index: number, longest = LONGEST): ReportedMessage {
  const calls = 'toolCalls' in message ? (message.toolCalls ?? []) : [];
  const text = [message.content, ...calls.map((call) => `calls ${callText(call)}`)].filter(Boolean).join('\n');
  return {
    message: index,
    role: message.role,
    text: text.slice(0, longest),
    missing: missing(text.length - longest),
  };
}

const missing = (length: number): number | undefined => (length > 0 ? length : undefined);

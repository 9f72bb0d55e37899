/** Tool messages against the calls that they answer. Invariant: each belongs to one call of the message before it, in the calls' order. */
import type { Message, ToolCall } from '../domain/messages';
import { quoted } from './trouble';

export const ANSWERS_FIX =
  'answer each call with one tool message that has its id, in the order of the calls, where the call fails too ("error : ...")';

/** What is wrong with the answers to one message, beginning with the field; undefined where nothing is. */
export function answersProblem(o: {
  /** Of the agent's message, or of the simulated user's. */
  calls: readonly ToolCall[] | undefined;
  messages: readonly Message[];
  /** An episode may end before all calls are run. */
  done: boolean;
  requestor: 'agent' | 'user';
}): string | undefined {
  const expected = (o.calls ?? []).map(({ id }) => id);
  let answered = 0;
  for (const [n, message] of o.messages.entries()) {
    if (message.role !== 'tool') continue;
    const field = `messages.${n}.toolCallId: "${quoted(message.toolCallId, 60)}"`;
    if ((message.requestor === 'user') !== (o.requestor === 'user')) {
      const wanted = o.requestor === 'user' ? 'must have requestor "user"' : 'must have no requestor';
      return `${field} answers a call of the ${o.requestor}'s and ${wanted}`;
    }
    if (!expected.includes(message.toolCallId)) return `${field} answers no call of the message`;
    if (message.toolCallId !== expected[answered])
      return `${field} comes where ${expected[answered] ?? 'no further answer'} should`;
    answered++;
  }
  if (o.done || answered === expected.length) return undefined;
  return `messages: call ${expected[answered]} has no answer`;
}

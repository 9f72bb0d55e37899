/**
 * What a policy has had before it in a rollout. An agent may go on with a context, leave it and come back, fork it, or begin another: a turn continues the
 * ids of the longest context that was answered and stands at the beginning of its own. Of other tools or another history no ids are continued.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Context } from '../domain/environment';
import type { Message } from '../domain/messages';

interface Ids {
  /** What the policy saw and sampled. */
  seen: readonly number[];
  /** The same without a hint. */
  trained: readonly number[];
}

interface Known extends Ids {
  /** Messages of the context. */
  length: number;
}

export function createContexts() {
  const answered: { context: Context; ids: Ids }[] = [];
  return {
    before({ messages, tools }: Context): Known {
      let longest: Known = { length: 0, seen: [], trained: [] };
      for (const { context, ids } of answered.toReversed()) {
        const { length } = context.messages;
        if (length <= longest.length || length > messages.length) continue;
        if (!isDeepStrictEqual(context.tools, tools)) continue;
        if (context.messages.every((message, n) => isSame(message, messages[n]!))) longest = { length, ...ids };
      }
      return longest;
    },
    /** `context`: with the answer. */
    add: (context: Context, ids: Ids): void => void answered.push({ context, ids }),
  };
}

/** Programs write an answer of theirs down anew: white space around its text, and in the arguments of calls, may be gone. */
function isSame(one: Message, other: Message): boolean {
  if (one === other) return true;
  if (one.role !== 'assistant' || other.role !== 'assistant') return isDeepStrictEqual(one, other);
  const calls = (message: typeof one) =>
    (message.toolCalls ?? []).map(({ id, name, arguments: given }) => ({ id, name, arguments: given }));
  return one.content.trim() === other.content.trim() && isDeepStrictEqual(calls(one), calls(other));
}

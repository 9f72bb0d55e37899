/** A message of a conversation and its neighbours, as evidence. Invariant: a text that is cut says how much is missing. */
import { callText, type Message } from '../../domain/messages';
import type { Quoted } from './result';

const NEIGHBOURS = 2;
const LONGEST = 1500;

export function excerpt({ messages, around }: { messages: readonly Message[]; around: number }): Quoted[] {
  const from = Math.max(0, around - NEIGHBOURS);
  return messages.slice(from, around + NEIGHBOURS + 1).flatMap((message, n) => {
    // The policy is long, and the same everywhere.
    if (message.role === 'system' && from + n !== around) return [];
    const whole = textOf(message);
    const text = whole.slice(0, LONGEST);
    return [
      { message: from + n, role: message.role, text, ...(text !== whole && { missing: whole.length - text.length }) },
    ];
  });
}

function textOf(message: Message): string {
  const calls = message.role === 'assistant' || message.role === 'user' ? (message.toolCalls ?? []) : [];
  return [...(message.content === '' && calls.length > 0 ? [] : [message.content]), ...calls.map(callText)].join('\n');
}

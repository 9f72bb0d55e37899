/** Quotes of conversations in a report. */
import { callText, type Message } from '../../domain/messages';
import type { ReportedMessage } from '../capability-model';

/** Characters of a quoted message. */
const LONGEST = 8000;

/** Cuts a long text, and says how much is missing. */
export function quotedMessage(message: Message, index: number, longest = LONGEST): ReportedMessage {
  const calls = 'toolCalls' in message ? (message.toolCalls ?? []) : [];
  const text = [message.content, ...calls.map((call) => `calls ${callText(call)}`)].filter(Boolean).join('\n');
  const missing = text.length > longest ? text.length - longest : undefined;
  return { message: index, role: message.role, text: text.slice(0, longest), missing };
}

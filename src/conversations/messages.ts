/** Messages of the OpenAI dialect as the method's. Invariant: one becomes one, in the same place. */
import { type Message, readArguments, type ToolCall, type ToolSchema } from '../domain/messages';
import type { z } from 'zod';
import type { Tally } from './conversation';
import type { Content, RawCall, RawMessage, rawToolSchema } from './shapes';

/** `odd` counts what was taken otherwise than it stands there. */
export function toMessages({ raw, odd }: { raw: readonly RawMessage[]; odd: Tally }): Message[] {
  /** Calls without an answer so far, oldest first: for answers that name none. */
  const open: string[] = [];
  return raw.map((message, n): Message => {
    const content = contentText(message.content, odd);
    if (message.role === 'user') return { role: 'user', content };
    if (message.role === 'tool') {
      const toolCallId = message.tool_call_id ?? open[0] ?? `call_${n}`;
      const at = open.indexOf(toolCallId);
      if (at >= 0) open.splice(at, 1);
      return { role: 'tool', toolCallId, content };
    }
    if (message.role !== 'assistant') return { role: 'system', content };
    const toolCalls = (message.tool_calls ?? []).map((call, i) => toCall({ call, id: `call_${n}_${i}`, odd }));
    open.push(...toolCalls.map(({ id }) => id));
    return { role: 'assistant', content, ...(toolCalls.length > 0 && { toolCalls }) };
  });
}

function contentText(content: Content, odd: Tally): string {
  if (typeof content === 'string') return content;
  return (content ?? []).flatMap((part) => partText(part, odd)).join('\n');
}

/** What an agent thinks to itself is nothing that anybody saw. */
const THOUGHTS = ['reasoning', 'thinking', 'redacted_thinking'];

function partText(part: string | { type?: string | undefined; text?: string | undefined }, odd: Tally): string[] {
  if (typeof part === 'string') return [part];
  const { type = 'part', text } = part;
  if (THOUGHTS.includes(type)) {
    odd.add(`content of type ${type} is left out`);
    return [];
  }
  if (text !== undefined) return [text];
  odd.add(`content of type ${type} is shown as [${type}]`);
  return [`[${type}]`];
}

function toCall({ call, id, odd }: { call: RawCall; id: string; odd: Tally }): ToolCall {
  const named = typeof call.function === 'string' ? { name: call.function, arguments: call.arguments } : call.function;
  return { id: call.id ?? id, name: named.name, ...toArguments(named.arguments, odd) };
}

type Arguments = Pick<ToolCall, 'arguments' | 'argumentsText'>;

/** What is no JSON object is what the agent wrote all the same: it stays visible. */
function toArguments(raw: string | ToolCall['arguments'] | null | undefined, odd: Tally): Arguments {
  if (typeof raw !== 'string') return { arguments: raw ?? {} };
  if (['', 'null'].includes(raw.trim())) return { arguments: {} };
  const given = readArguments(raw);
  if (given) return given;
  odd.add('arguments of a call that are no JSON object are shown as {"not an object": TEXT}');
  return { arguments: { 'not an object': raw } };
}

export const toTool = ({ name, description, parameters }: z.infer<typeof rawToolSchema>): ToolSchema => ({
  name,
  description: description ?? '',
  parameters: parameters ?? { type: 'object', properties: {} },
});

/** Chat messages and tools in OpenAI's shapes, with MCP's `annotations` and `outputSchema` on tools; and JSON in a text. */
import { z } from 'zod';
import { reasonOf } from './failures';
import { rewriteJson } from './json';
import { findHalfCharacter } from './plain-text';

const toolCallSchema = z.object({
  id: z.string(),
  name: z.string(),
  /** Parsed arguments, in the order in which the model wrote them. */
  arguments: z.record(z.string(), z.unknown()),
  /** As the model wrote them, without white space, where JSON of the parsed ones is another text: 2.0, 1e3, numbers that JavaScript does not have. */
  argumentsText: z.string().optional(),
});
export type ToolCall = z.infer<typeof toolCallSchema>;

type Called = Pick<ToolCall, 'name' | 'arguments' | 'argumentsText'>;

export const argumentsOf = ({ arguments: values, argumentsText }: Omit<Called, 'name'>): string =>
  argumentsText ?? JSON.stringify(values);

export const callText = (call: Called): string => `${call.name}(${argumentsOf(call)})`;

export const messageSchema = z.discriminatedUnion('role', [
  z.object({ role: z.literal('system'), content: z.string() }),
  /** A simulated user may have tools of its own, e.g. a phone: its calls are recorded, but the agent does not see them. */
  z.object({ role: z.literal('user'), content: z.string(), toolCalls: z.array(toolCallSchema).optional() }),
  z.object({ role: z.literal('assistant'), content: z.string(), toolCalls: z.array(toolCallSchema).optional() }),
  z.object({
    role: z.literal('tool'),
    toolCallId: z.string(),
    content: z.string(),
    /** Set where it answers a call of the user's. */
    requestor: z.literal('user').optional(),
  }),
]);
export type Message = z.infer<typeof messageSchema>;
export type AssistantMessage = Extract<Message, { role: 'assistant' }>;
export type UserMessage = Extract<Message, { role: 'user' }>;

/** Returns the messages that the agent sees: all but the user's own tool calls and their results. */
export const agentView = (messages: readonly Message[]): Message[] =>
  messages.filter((m) => !(m.role === 'user' && m.toolCalls?.length) && !(m.role === 'tool' && m.requestor === 'user'));

/** Returns the messages before the agent's first answer. A greeting before the user spoke belongs to the environment. */
export function openingOf<M extends Pick<Message, 'role'>>(messages: readonly M[]): M[] {
  const asked = messages.findIndex(({ role }) => role === 'user');
  const answered = messages.findIndex(({ role }, n) => n > asked && role === 'assistant');
  return messages.slice(0, answered < 0 ? undefined : answered);
}

export interface JsonSchema {
  type?: string;
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  enum?: (string | number)[];
  pattern?: string;
  items?: JsonSchema;
  minimum?: number;
  maximum?: number;
  multipleOf?: number;
}

const someSchema = z.custom<JsonSchema>(
  (v) => typeof v === 'object' && v !== null,
  'expected a JSON schema: an object',
);

export const toolSchema = z.object({
  name: z.string(),
  description: z.string(),
  parameters: someSchema,
  /** MCP: `readOnlyHint` marks a tool that changes nothing; turns that only call such tools carry no loss. */
  annotations: z.object({ readOnlyHint: z.boolean().optional() }).optional(),
  /** The fields of one record of the observation, in rendered order; values are separated by spaces, records by " ; ". */
  outputSchema: someSchema.optional(),
});
export type ToolSchema = z.infer<typeof toolSchema>;

export type NewCall = Omit<ToolCall, 'id'>;

export const say = (content: string): AssistantMessage => ({ role: 'assistant', content });

/** One message with these calls, under ids of their own. */
export const callAll = (calls: readonly NewCall[]): AssistantMessage => ({
  role: 'assistant',
  content: '',
  toolCalls: calls.map((call, n) => ({ ...call, id: `call_${n}` })),
});

/** Parses JSON before a piped schema; a text that is no JSON is an issue with a path, and not an exception. */
export const jsonText = z.string().transform((text, context): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    context.addIssue({ code: 'custom', message: `no JSON: ${reasonOf(error)}` });
    return z.NEVER;
  }
});

/** Limit of nesting: copying or writing a value recurses into it, and some servers fail at a few hundred levels. */
export const DEEPEST = 128;
const isTooDeep = (value: unknown, levels = DEEPEST): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((one) => isTooDeep(one, levels - 1)));

const argumentsSchema = jsonText.pipe(z.record(z.string(), z.unknown()));

/** Returns a call's arguments; undefined if the text holds none. The text is kept where the values alone would not give it back. */
export function readArguments(text: string): Pick<ToolCall, 'arguments' | 'argumentsText'> | undefined {
  const values = argumentsSchema.safeParse(text).data;
  if (!values || isTooDeep(values) || findHalfCharacter(values)) return undefined;
  const written = rewriteJson(text, {
    outside: (part) => part.replace(/\s+/g, ''),
    string: (quoted) => JSON.stringify(JSON.parse(quoted)),
  });
  return { arguments: values, ...(written !== JSON.stringify(values) && { argumentsText: written }) };
}

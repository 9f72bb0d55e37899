/**
 * Requests for chat completions as OpenAI's clients send them, and the bodies that the policy server is sent for them. Invariant: a conversation is
 * rendered as the campaign's own rollouts were, with the policy's prompt in the opening and calls numbered through it.
 */
import type { Context as Call } from 'hono';
import { z } from 'zod';
import type { Context } from '../domain/environment';
import { reasonOf } from '../domain/failures';
import { describeIssue } from '../domain/issues';
import { type JsonBounds, measureJson } from '../domain/json-size';
import {
  type AssistantMessage,
  DEEPEST,
  isArguments,
  type Message,
  openingOf,
  type ToolSchema,
} from '../domain/messages';
import { findHalfCharacter, HALF_CHARACTER_PROBLEM } from '../domain/plain-text';
import type { Prompt, Sampling } from '../domain/rollout';
import { AS_IT_IS, callsOf, sampledAs, toAssistantMessage, toWireMessage, toWireTools } from '../policy/wire';
import { withPrompt } from '../rollout/play';
import { badRequest, GatewayError } from './errors';

export const CHAT_PATH = '/v1/chat/completions';

export const notFound = ({ req }: Call): GatewayError =>
  new GatewayError(404, `there is no ${req.method} ${req.path.slice(0, 200)}; ask POST ${CHAT_PATH}`, {
    code: 'not_found',
  });

export const bearerKey = (c: Call): string | undefined =>
  /^Bearer (.*)$/i.exec(c.req.header('authorization') ?? '')?.[1];

/** Bounds on a body, checked before it is parsed: parsing blocks all other requests. */
const BODY: JsonBounds = { values: 100_000, levels: DEEPEST };

const isEmpty = (value: unknown): boolean =>
  value === null || value === '' || (typeof value === 'object' && Object.keys(value as object).length === 0);
/** An optional field. Clients that write every field send null, or something empty, for one that they leave out. */
const optional = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((value) => (isEmpty(value) ? undefined : value), schema.optional());
const refused = (fix: string) => optional(z.undefined(`it can't be carried; ${fix}`));

const partSchema = z.object({ type: z.literal('text', 'only text can be read'), text: z.string() });
/** Content is a text, or a list of parts that are texts. */
const textSchema = z
  .preprocess(
    (content) => (typeof content === 'string' ? [{ type: 'text', text: content }] : content),
    z.array(partSchema),
  )
  .transform((parts) => parts.map(({ text }) => text).join(''));
export const callSchema = z.object({
  id: z.string(),
  type: z.literal('function').default('function'),
  function: z.object({ name: z.string(), arguments: z.string() }),
});
/** A call that a client sends back. */
const sentCallSchema = z.object({
  id: optional(z.string()),
  type: optional(z.literal('function')),
  function: z.object({ name: z.string(), arguments: optional(z.string()) }),
});

const sentMessageSchema = z.discriminatedUnion('role', [
  z.object({ role: z.literal('system'), content: textSchema }),
  /** OpenAI's newer name for system. */
  z.object({ role: z.literal('developer').transform(() => 'system' as const), content: textSchema }),
  z.object({ role: z.literal('user'), content: textSchema }),
  z.object({
    role: z.literal('assistant'),
    content: textSchema.nullish(),
    refusal: optional(z.string()),
    tool_calls: optional(z.array(sentCallSchema)),
    function_call: refused('send tool_calls'),
  }),
  z.object({ role: z.literal('tool'), tool_call_id: optional(z.string()), content: textSchema.nullish() }),
]);
type SentMessage = z.output<typeof sentMessageSchema>;

export type WireCall = z.output<typeof callSchema>;
type WireMessage =
  | { role: 'system' | 'user'; content: string }
  | { role: 'assistant'; content: string | null; tool_calls?: WireCall[] }
  | { role: 'tool'; tool_call_id: string; content: string };

/** Bounds the arguments of all calls together as the body is bounded: each of them is a JSON text that is parsed too. */
function checkArguments(messages: SentMessage[], context: z.RefinementCtx): void {
  let values = 0;
  for (const [n, message] of messages.entries())
    for (const call of (message.role === 'assistant' && message.tool_calls) || []) {
      values += measureJson(call.function.arguments ?? '', BODY).values;
      if (values <= BODY.values) continue;
      const problem = `the arguments of calls have over ${BODY.values} values up to here; send fewer`;
      return context.addIssue({ code: 'custom', path: [n, 'tool_calls'], message: problem });
    }
}

/** Numbers calls without an id through the conversation; a result without an id answers the first of them that has no answer yet. */
function withIds(messages: SentMessage[], context: z.RefinementCtx): WireMessage[] {
  let calls = 0;
  let unanswered = new Set<string>();
  return messages.map((message, n) => {
    if (message.role === 'assistant') {
      const given = (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
        id: id ?? `call_${calls++}`,
        type: 'function' as const,
        function: { name, arguments: text ?? '{}' },
      }));
      unanswered = new Set(given.map(({ id }) => id));
      return toWireAssistant(message.content ?? message.refusal ?? null, given);
    }
    if (message.role !== 'tool') return message;
    const [next] = unanswered;
    const { content, tool_call_id = next } = message;
    if (tool_call_id === undefined) {
      context.addIssue({ code: 'custom', path: [n, 'tool_call_id'], message: 'name the call that it answers' });
      return z.NEVER;
    }
    unanswered.delete(tool_call_id);
    return { role: 'tool', tool_call_id, content: content ?? '' };
  });
}

function toWireAssistant(content: string | null, calls: WireCall[]): WireMessage {
  const role = 'assistant';
  if (calls.length === 0) return { role, content: content ?? '' };
  if (calls.every((call) => isArguments(call.function.arguments))) return { role, content, tool_calls: calls };
  // Some servers refuse calls that can't be read: these become text, as in the campaign's rollouts.
  const { calls: readable, ...text } = toClientMessage(toAssistantMessage(content ?? '', calls));
  return { role, ...text, ...(readable.length > 0 && { tool_calls: readable }) };
}

/** Returns a message of the policy as clients get it. */
export function toClientMessage(message: AssistantMessage): { content: string | null; calls: WireCall[] } {
  const calls = callsOf(message);
  return { content: message.content === '' && calls.length > 0 ? null : message.content, calls };
}

/** Fields that go to the policy server as they are. */
const passed = {
  tool_choice: optional(z.unknown()),
  parallel_tool_calls: optional(z.boolean()),
  max_tokens: optional(z.int().positive()),
  max_completion_tokens: optional(z.int().positive()),
  temperature: optional(z.number().min(0).max(2)),
  top_p: optional(z.number().gt(0).max(1)),
  top_k: optional(z.int().min(-1)),
  min_p: optional(z.number().min(0).max(1)),
  repetition_penalty: optional(z.number().positive()),
  presence_penalty: optional(z.number().min(-2).max(2)),
  frequency_penalty: optional(z.number().min(-2).max(2)),
  seed: optional(z.int()),
  stop: optional(z.union([z.string(), z.array(z.string()).max(4)])),
  response_format: optional(z.unknown()),
  modalities: optional(z.unknown()),
  logprobs: optional(z.boolean()),
  top_logprobs: optional(z.int().min(0).max(20)),
};

/** Fields that are not named here change no answer and are left out. */
const requestSchema = z.object({
  model: z.string('name one that GET /v1/models lists'),
  messages: z.array(sentMessageSchema).min(1).superRefine(checkArguments).transform(withIds),
  tools: optional(
    z.array(
      z.object({
        type: optional(z.literal('function')),
        function: z.object({
          name: z.string(),
          description: optional(z.string()).transform((description = '') => description),
          parameters: z
            .record(z.string(), z.unknown())
            .nullish()
            .transform((parameters) => parameters ?? { type: 'object', properties: {} }),
        }),
      }),
    ),
  ),
  n: optional(z.literal(1, 'one choice is made: leave n out')),
  stream: optional(z.boolean()),
  stream_options: optional(z.object({ include_usage: optional(z.boolean()) })),
  user: optional(z.string()),
  logit_bias: refused('leave it out'),
  functions: refused('send tools'),
  function_call: refused('send tool_choice'),
  ...passed,
});
export type ChatRequest = z.output<typeof requestSchema>;

/** Throws GatewayError, which names the first bad field and its value. */
export function parseRequest(text: string): ChatRequest {
  const { exceeded, field } = measureJson(text, BODY);
  if (exceeded)
    throw badRequest(`${field ?? 'body'}: the body has over ${BODY[exceeded]} ${exceeded} here; send fewer`, field);
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw badRequest(`the body is not JSON (${reasonOf(error)})`);
  }
  const parsed = requestSchema.safeParse(body);
  if (!parsed.success) {
    const { field, problem } = describeIssue(parsed.error, body);
    throw badRequest(`${field || 'body'}: ${problem}`, field || null);
  }
  const half = findHalfCharacter(parsed.data)?.join('.');
  if (half !== undefined) throw badRequest(`${half} ${HALF_CHARACTER_PROBLEM}`, half);
  return parsed.data;
}

export const contextIn = ({ messages, tools }: Pick<ChatRequest, 'messages' | 'tools'>): Context => ({
  messages: messages.map(toMessage),
  tools: toolsIn({ tools }),
});

const toolsIn = ({ tools }: Pick<ChatRequest, 'tools'>): ToolSchema[] => (tools ?? []).map((tool) => tool.function);

export const openingIn = ({ messages, tools }: Pick<ChatRequest, 'messages' | 'tools'>): Context =>
  contextIn({ messages: openingOf(messages), tools });

function toMessage(message: WireMessage): Message {
  if (message.role === 'tool') return { role: 'tool', toolCallId: message.tool_call_id, content: message.content };
  if (message.role !== 'assistant') return message;
  return toAssistantMessage(message.content ?? '', message.tool_calls ?? []);
}

/** Returns the body that the policy server is sent. `sampling` holds the values of fields that the request leaves out. */
export function bodyFor(request: ChatRequest, prompt?: Prompt, sampling?: Sampling): object {
  const { messages, tools } = request;
  return {
    ...(sampling ? sampledAs(sampling) : { ...AS_IT_IS, temperature: 1, top_p: 1 }),
    ...Object.fromEntries(Object.entries(passedOf(request)).filter(([, value]) => value !== undefined)),
    messages: prompt ? prompted(messages, prompt) : messages,
    ...(tools?.length && { tools: toWireTools(toolsIn(request)) }),
  };
}

/** Returns the fields of a request beside its conversation. */
export const passedOf = (request: ChatRequest): Record<string, unknown> =>
  Object.fromEntries(Object.keys(passed).map((name) => [name, request[name as keyof typeof passed]]));

function prompted(messages: readonly WireMessage[], prompt: Prompt): object[] {
  const opening = openingOf(messages).map(toMessage);
  return [...withPrompt(opening, prompt).map(toWireMessage), ...messages.slice(opening.length)];
}

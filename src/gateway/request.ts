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
import { DEEPEST, type Message, openingOf, type ToolSchema } from '../domain/messages';
import { findHalfCharacter, HALF_CHARACTER_PROBLEM } from '../domain/plain-text';
import type { Prompt, Sampling } from '../domain/rollout';
import { AS_IT_IS, sampledAs, toAssistantMessage, toWireMessage, toWireTools } from '../policy/wire';
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
/** A call that a client sends back. */
const callSchema = z.object({
  id: z.string(),
  type: optional(z.literal('function')),
  function: z.object({ name: z.string(), arguments: optional(z.string()).transform((text = '{}') => text) }),
});

const sentMessageSchema = z.discriminatedUnion('role', [
  z.object({ role: z.literal('system'), content: textSchema }),
  /** OpenAI's newer name for system. */
  z.object({ role: z.literal('developer').transform(() => 'system' as const), content: textSchema }),
  z.object({ role: z.literal('user'), content: textSchema }),
  z.object({
    role: z.literal('assistant'),
    content: textSchema.nullish(),
    tool_calls: optional(z.array(callSchema)),
    function_call: refused('send tool_calls'),
  }),
  z.object({ role: z.literal('tool'), tool_call_id: z.string(), content: textSchema.nullish() }),
]);

function toMessage(sent: z.output<typeof sentMessageSchema>): Message {
  if (sent.role === 'assistant') return toAssistantMessage(sent.content ?? '', sent.tool_calls ?? []);
  return sent.role === 'tool'
    ? { role: 'tool', toolCallId: sent.tool_call_id, content: sent.content ?? '' }
    : { role: sent.role, content: sent.content };
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
};

const toolSchema = z
  .object({
    type: optional(z.literal('function')),
    function: z.object({
      name: z.string(),
      description: optional(z.string()).transform((description = '') => description),
      parameters: z
        .record(z.string(), z.unknown())
        .nullish()
        .transform((parameters) => parameters ?? { type: 'object', properties: {} }),
    }),
  })
  .transform((tool): ToolSchema => tool.function);

/** Fields that are not named here change no answer and are left out. */
const requestSchema = z.object({
  model: z.string('name one that GET /v1/models lists'),
  messages: z.array(sentMessageSchema.transform(toMessage)).min(1),
  tools: optional(z.array(toolSchema)).transform((tools = []) => tools),
  n: optional(z.literal(1, 'one choice is made: leave n out')),
  stream: optional(z.boolean()),
  stream_options: optional(z.object({ include_usage: optional(z.boolean()) })),
  user: optional(z.string()),
  logit_bias: refused('leave it out'),
  logprobs: optional(z.literal(false, 'ask the policy server for log-probs')),
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

/** Returns what is known before the agent's first answer. */
export const openingIn = ({ messages, tools }: ChatRequest): Context => ({ messages: openingOf(messages), tools });

/** Returns the body that the policy server is sent. `sampling` holds the values of fields that the request leaves out. */
export function bodyFor(request: ChatRequest, prompt?: Prompt, sampling?: Sampling): object {
  const { messages, tools } = request;
  const opening = openingOf(messages);
  return {
    ...(sampling ? sampledAs(sampling) : { ...AS_IT_IS, temperature: 1, top_p: 1 }),
    ...Object.fromEntries(Object.entries(request).filter(([name, value]) => name in passed && value !== undefined)),
    messages: [...withPrompt(opening, prompt), ...messages.slice(opening.length)].map(toWireMessage),
    ...(tools.length > 0 && { tools: toWireTools(tools) }),
  };
}

/**
 * OpenAI's chat completions: what a client may ask, what the policy server is asked for it, and its answer, whole or in parts.
 * Invariant: a conversation is rendered as the campaign's own rollouts were, with the policy's prompt in the opening and calls numbered through it.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Context as Call } from 'hono';
import type { Context } from '../domain/environment';
import { OutsideFailure } from '../domain/failures';
import { type Message, openingOf, toolSchema } from '../domain/messages';
import type { Prompt, Sampling } from '../domain/rollout';
import { AS_IT_IS, callsIn, numbered, sampledAs, toAssistantMessage, toWireMessage, toWireTools } from '../policy/wire';
import { withPrompt } from '../rollout/play';
import { badRequest } from './errors';

/** A text alone is one part of it. */
export const partsOf = <Part extends z.ZodType>(part: Part) =>
  z.preprocess((content) => (typeof content === 'string' ? [{ type: 'text', text: content }] : content), z.array(part));

const wordsSchema = z.object({ type: z.literal('text', 'only text can be read'), text: z.string() });
const textSchema = partsOf(wordsSchema).transform((parts) => parts.map(({ text }) => text).join(''));
const callSchema = z.object({
  id: z.string(),
  type: z.literal('function').default('function'),
  function: z.object({ name: z.string(), arguments: z.string() }),
});

const messageSchema = z.discriminatedUnion('role', [
  z.object({ role: z.literal('system'), content: textSchema }),
  /** OpenAI's newer name of the same. */
  z.object({ role: z.literal('developer').transform(() => 'system' as const), content: textSchema }),
  z.object({ role: z.literal('user'), content: textSchema }),
  z.object({
    role: z.literal('assistant'),
    content: textSchema.nullish().transform((content) => content ?? null),
    tool_calls: z.array(callSchema).optional(),
  }),
  z.object({ role: z.literal('tool'), tool_call_id: z.string(), content: textSchema }),
]);
export type WireMessage = z.output<typeof messageSchema>;

/** Fields that go to the policy server as they are. */
const passed = {
  tool_choice: z.unknown().optional(),
  parallel_tool_calls: z.boolean().nullish(),
  max_tokens: z.int().positive().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().gt(0).max(1).nullish(),
  /** Anthropic's and vLLM's. */
  top_k: z.int().min(-1).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  seed: z.int().nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(4)]).nullish(),
  response_format: z.unknown().optional(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
};

/** Whatever else is asked changes no answer, and is left out. */
const requestSchema = z.object({
  model: z.string(),
  messages: z.array(messageSchema).min(1),
  tools: z
    .array(
      z.object({
        type: z.literal('function'),
        function: z.looseObject({
          name: z.string(),
          description: z.string().default(''),
          parameters: z.record(z.string(), z.unknown()).default({ type: 'object', properties: {} }),
        }),
      }),
    )
    .nullish(),
  n: z.literal(1, 'one choice is made: leave n out').nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  user: z.string().nullish(),
  ...passed,
});
export type ChatRequest = z.output<typeof requestSchema>;

/** Throws GatewayError, which names the first bad field. */
export function parseBody<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw badRequest('the body is no JSON');
  }
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const param = issue?.path.join('.') || null;
  throw badRequest(`${param ?? 'body'}: ${issue?.message ?? 'it can not be read'}`, param);
}

export const contextIn = ({ messages, tools }: Pick<ChatRequest, 'messages' | 'tools'>): Context => ({
  messages: messages.map(toMessage),
  tools: (tools ?? []).map((tool) => toolSchema.parse(tool.function)),
});

/** What a router looks at. */
export const openingIn = ({ messages, tools }: Pick<ChatRequest, 'messages' | 'tools'>): Context =>
  contextIn({ messages: openingOf(messages), tools });

function toMessage(message: WireMessage): Message {
  if (message.role === 'tool') return { role: 'tool', toolCallId: message.tool_call_id, content: message.content };
  if (message.role !== 'assistant') return message;
  return toAssistantMessage(message.content ?? '', message.tool_calls ?? []);
}

/** What the policy server is asked. `sampling`: how, where the request does not say. */
export function bodyFor(request: ChatRequest, prompt?: Prompt, sampling?: Sampling): object {
  const { messages, tools } = request;
  const given = Object.entries(passedOf(request)).filter(([, value]) => value !== undefined && value !== null);
  return {
    ...(sampling ? sampledAs(sampling) : { ...AS_IT_IS, temperature: 1, top_p: 1 }),
    ...Object.fromEntries(given),
    messages: prompt ? prompted(messages, prompt) : messages,
    ...(tools?.length && { tools: toWireTools(contextIn(request).tools) }),
  };
}

/** What a request asks for beside its conversation. */
export const passedOf = (request: ChatRequest): Record<string, unknown> =>
  Object.fromEntries(Object.keys(passed).map((name) => [name, request[name as keyof typeof passed]]));

function prompted(messages: readonly WireMessage[], prompt: Prompt): object[] {
  const opening = openingOf(messages).map(toMessage);
  return [...withPrompt(opening, prompt).map(toWireMessage), ...messages.slice(opening.length)];
}

const logprobSchema = z.looseObject({
  token: z.string(),
  logprob: z.number(),
  bytes: z.array(z.number()).nullish().default(null),
  top_logprobs: z
    .array(z.looseObject({ bytes: z.array(z.number()).nullish().default(null) }))
    .nullish()
    .transform((likeliest) => likeliest ?? []),
});
const logprobsSchema = z
  .object({ content: z.array(logprobSchema) })
  .transform((logprobs) => ({ ...logprobs, refusal: null }));
const finishReasons = ['stop', 'tool_calls', 'length', 'content_filter', 'repetition', 'abort'] as const;
const usageSchema = z.looseObject({ prompt_tokens: z.number(), completion_tokens: z.number() });
const answerSchema = z.object({
  choices: z.tuple([
    z.object({
      message: z.object({
        content: z.string().nullish(),
        tool_calls: z.array(callSchema).nullish(),
      }),
      finish_reason: z.enum(finishReasons),
      /** vLLM's: the stop string, or an id. */
      stop_reason: z.unknown().optional(),
      /** Read where they are asked for. */
      logprobs: z.unknown().optional(),
    }),
  ]),
  usage: usageSchema.optional(),
});

/** An answer of the policy, as clients get it but for `id`, `created` and `model`. */
export interface Answer {
  content: string | null;
  calls: z.output<typeof callSchema>[];
  finish: string;
  /** Of the request's, which has ended it. */
  stop?: string;
  logprobs: object | null;
  usage?: Usage;
}
type Usage = z.output<typeof usageSchema>;

/** Throws PolicyAnswerInvalid, or PolicyServerError where the server gave it up. */
export function parseAnswer(value: unknown, request: ChatRequest): Answer {
  const { choices, usage } = parsedBy(answerSchema, value);
  const [{ message, finish_reason, stop_reason, logprobs }] = choices;
  return {
    content: message.content ?? null,
    calls: numbered(message.tool_calls ?? [], request.messages.map(toMessage), 'call'),
    ...endOf(finish_reason, stop_reason),
    logprobs: logprobsOf(logprobs, request),
    ...(usage && { usage }),
  };
}

function endOf(finish: (typeof finishReasons)[number], stop: unknown): Pick<Answer, 'finish' | 'stop'> {
  if (finish === 'abort')
    throw new OutsideFailure('PolicyServerError', 'policy server: it gave an answer up (finish_reason abort)');
  return { finish: finish === 'repetition' ? 'length' : finish, ...(typeof stop === 'string' && { stop }) };
}

const logprobsOf = (logprobs: unknown, request: ChatRequest): object | null =>
  request.logprobs && logprobs ? parsedBy(logprobsSchema, logprobs) : null;

const callPartSchema = z.object({
  index: z.int().min(0).max(999),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).default({}),
});
const partSchema = z.object({
  choices: z.array(
    z.object({
      delta: z.object({ content: z.string().nullish(), tool_calls: z.array(callPartSchema).nullish() }),
      finish_reason: z.enum(finishReasons).nullish(),
      ...{ stop_reason: z.unknown().optional(), logprobs: z.unknown().optional() },
    }),
  ),
  usage: usageSchema.nullish(),
});

/** What a stream has brought of an answer. */
export interface Part extends Partial<Pick<Answer, 'content' | 'finish' | 'stop' | 'logprobs' | 'usage'>> {
  calls: CallPart[];
}
interface CallPart {
  index: number;
  /** Of its first part. */
  begins?: { id: string; name: string };
  arguments: string;
}

/** Reads the events of a stream, one after the other. Throws as `parseAnswer` does. */
export function partReader(request: ChatRequest): (event: unknown) => Part {
  const earlier = callsIn(request.messages.map(toMessage));
  return (event) => {
    const { choices, usage } = parsedBy(partSchema, event);
    const [{ delta = {}, finish_reason, stop_reason, logprobs } = {} as Partial<(typeof choices)[0]>] = choices;
    return {
      content: delta.content ?? null,
      calls: (delta.tool_calls ?? []).map(({ index, function: { name, arguments: text } }) => ({
        index,
        ...(name && { begins: { id: `call_${earlier + index}`, name } }),
        arguments: text ?? '',
      })),
      logprobs: logprobsOf(logprobs, request),
      ...(finish_reason && endOf(finish_reason, stop_reason)),
      ...(usage && { usage }),
    };
  };
}

function parsedBy<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new OutsideFailure('PolicyAnswerInvalid', `policy server's answer: ${z.prettifyError(parsed.error)}`);
}

export interface Head {
  id: string;
  created: number;
  model: string;
  system_fingerprint: string;
}

export const headOf = (model: string, version: string): Head => ({
  id: randomUUID(),
  created: Math.floor(Date.now() / 1000),
  model,
  system_fingerprint: version,
});

/** How clients ask and are answered: OpenAI's form, and others that are told in it. */
export interface Form {
  /** Throws GatewayError. */
  read(text: string, c: Call): ChatRequest;
  whole(head: Head, answer: Answer): object;
  /** What is sent of a stream: at its beginning, of each part, and at its end. */
  teller(head: Head, request: ChatRequest): Teller;
}

interface Teller {
  begin(): StreamEvent[];
  part(part: Part): StreamEvent[];
  end(): StreamEvent[];
}

export interface StreamEvent {
  name?: string;
  data: object | '[DONE]';
}

export const chat: Form = {
  read: (text) => parseBody(requestSchema, text),

  whole: ({ id, ...head }, { content, calls, finish, logprobs, usage }) => ({
    id: `chatcmpl-${id}`,
    ...head,
    object: 'chat.completion',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content, refusal: null, ...(calls.length > 0 && { tool_calls: calls }) },
        logprobs,
        finish_reason: finish,
      },
    ],
    ...(usage && { usage }),
  }),

  teller({ id, ...head }, { stream_options }) {
    const withUsage = Boolean(stream_options?.include_usage);
    const about = { id: `chatcmpl-${id}`, ...head, object: 'chat.completion.chunk' };
    const chunk = (delta: object, more: object = {}) => ({
      data: {
        ...about,
        choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...more }],
        ...(withUsage && { usage: null }),
      },
    });
    let usage: Usage | null = null;
    return {
      begin: () => [chunk({ role: 'assistant', content: '', refusal: null })],
      part({ content, calls, logprobs = null, finish, usage: told }) {
        usage = told ?? usage;
        return [
          ...(content || logprobs ? [chunk({ content: content ?? '' }, { logprobs })] : []),
          ...calls.map(({ index, begins, arguments: text }) =>
            chunk({
              tool_calls: [
                begins
                  ? { index, id: begins.id, type: 'function', function: { name: begins.name, arguments: text } }
                  : { index, function: { arguments: text } },
              ],
            }),
          ),
          ...(finish ? [chunk({}, { finish_reason: finish })] : []),
        ];
      },
      end: () => [...(withUsage ? [{ data: { ...about, choices: [], usage } }] : []), { data: '[DONE]' }],
    };
  },
};

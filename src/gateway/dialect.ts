/**
 * OpenAI's chat completions: what a client may ask, what the policy server is asked for it, and its answer, whole or in parts.
 * Invariant: a conversation is rendered as the campaign's own rollouts were, with the policy's prompt in the opening and calls numbered through it.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Context as Call } from 'hono';
import type { Context } from '../domain/environment';
import { OutsideFailure } from '../domain/failures';
import { measureJson } from '../domain/json-size';
import { isArguments, type AssistantMessage, type Message, openingOf, type ToolSchema } from '../domain/messages';
import type { Prompt, Sampling } from '../domain/rollout';
import {
  AS_IT_IS,
  callsOf,
  messageOf,
  numbered,
  sampledAs,
  thoughtFilter,
  toAssistantMessage,
  toWireMessage,
  toWireTools,
} from '../policy/wire';
import { withPrompt } from '../rollout/play';
import { BODY, parseBody } from './body';

/** A text alone is one part of it. */
export const partsOf = <Part extends z.ZodType>(part: Part) =>
  z.preprocess((content) => (typeof content === 'string' ? [{ type: 'text', text: content }] : content), z.array(part));

const isEmpty = (value: unknown): boolean =>
  value === null || value === '' || (typeof value === 'object' && Object.keys(value as object).length === 0);
/** An optional field. Clients that write every field send null, or something empty, for one that they leave out. */
const optional = <Schema extends z.ZodType>(schema: Schema) =>
  z.preprocess((value) => (isEmpty(value) ? undefined : value), schema.optional());
const refused = (fix: string) => optional(z.undefined(`it can't be carried; ${fix}`));

const wordsSchema = z.object({ type: z.literal('text', 'only text can be read'), text: z.string() });
const textSchema = partsOf(wordsSchema).transform((parts) => parts.map(({ text }) => text).join(''));
const callSchema = z.object({
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
  /** OpenAI's newer name of the same. */
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

type WireCall = z.output<typeof callSchema>;
export type WireMessage =
  | { role: 'system' | 'user'; content: string }
  | { role: 'assistant'; content: string | null; tool_calls?: WireCall[] }
  | { role: 'tool'; tool_call_id: string; content: string };

/** Bounds the JSON texts that a body holds as the body itself is bounded: each of them is parsed too. */
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
  // Some servers refuse what can't be read: it is text, as in the campaign's rollouts.
  const { calls: readable, ...words } = told(toAssistantMessage(content ?? '', calls));
  return { role, ...words, ...(readable.length > 0 && { tool_calls: readable }) };
}

/** As clients have it. */
function told(message: AssistantMessage): Pick<Answer, 'content' | 'calls'> {
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
  /** Anthropic's and vLLM's. */
  top_k: optional(z.int().min(-1)),
  /** vLLM's. */
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

/** Whatever else is asked changes no answer, and is left out. */
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

export const contextIn = ({ messages, tools }: Pick<ChatRequest, 'messages' | 'tools'>): Context => ({
  messages: messages.map(toMessage),
  tools: toolsIn({ tools }),
});

const toolsIn = ({ tools }: Pick<ChatRequest, 'tools'>): ToolSchema[] => (tools ?? []).map((tool) => tool.function);

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
  return {
    ...(sampling ? sampledAs(sampling) : { ...AS_IT_IS, temperature: 1, top_p: 1 }),
    ...Object.fromEntries(Object.entries(passedOf(request)).filter(([, value]) => value !== undefined)),
    messages: prompt ? prompted(messages, prompt) : messages,
    ...(tools?.length && { tools: toWireTools(toolsIn(request)) }),
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
  const said = saidIn(message, request);
  return {
    ...said,
    ...endOf(finish_reason, stop_reason, said.calls),
    logprobs: logprobsOf(logprobs, request),
    ...(usage && { usage }),
  };
}

/** As the campaign's rollouts have it: thoughts are nobody's, calls that can't be read are text, and the others are numbered. */
function saidIn(
  message: Parameters<typeof messageOf>[0],
  { messages }: ChatRequest,
): Pick<Answer, 'content' | 'calls'> {
  const { toolCalls, ...said } = messageOf(message);
  const before = messages.map((one) => ({
    role: one.role,
    ...(one.role === 'assistant' && { toolCalls: one.tool_calls ?? [] }),
    ...(one.role === 'tool' && { toolCallId: one.tool_call_id }),
  }));
  return told({ ...said, ...(toolCalls && { toolCalls: numbered(toolCalls, before, 'call') }) });
}

function endOf(
  finish: (typeof finishReasons)[number],
  stop: unknown,
  calls: Answer['calls'],
): Pick<Answer, 'finish' | 'stop'> {
  if (finish === 'abort')
    throw new OutsideFailure('PolicyServerError', 'policy server: it gave an answer up (finish_reason abort)');
  const told = finish === 'tool_calls' && calls.length === 0 ? 'stop' : finish;
  return { finish: told === 'repetition' ? 'length' : told, ...(typeof stop === 'string' && { stop }) };
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

/** What a stream has brought of an answer: its calls come with its end, when it is known whether they can be read. */
export type Part = Partial<Answer>;

/** Reads the events of a stream, one after the other. Throws as `parseAnswer` does. */
export function partReader(request: ChatRequest): (event: unknown) => Part {
  const spoken = thoughtFilter();
  const called: z.output<typeof callSchema>[] = [];
  let isSilent = true;
  return (event) => {
    const { choices, usage } = parsedBy(partSchema, event);
    const [{ delta = {}, finish_reason, stop_reason, logprobs } = {} as Partial<(typeof choices)[0]>] = choices;
    for (const { index, function: part } of delta.tool_calls ?? []) {
      const call = (called[index] ??= { id: '', type: 'function', function: { name: '', arguments: '' } });
      call.function.name ||= part.name ?? '';
      call.function.arguments += part.arguments ?? '';
    }
    const words = spoken(delta.content ?? '') + (finish_reason ? spoken() : '');
    isSilent &&= words === '';
    const ended = finish_reason ? saidIn({ tool_calls: called.filter(Boolean) }, request) : undefined;
    const unread = ended?.content ? (isSilent ? ended.content : `\n${ended.content}`) : '';
    return {
      content: words + unread || null,
      logprobs: logprobsOf(logprobs, request),
      ...(finish_reason && ended && { calls: ended.calls, ...endOf(finish_reason, stop_reason, ended.calls) }),
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
      part({ content, calls = [], logprobs = null, finish, usage: last }) {
        usage = last ?? usage;
        return [
          ...(content || logprobs ? [chunk({ content: content ?? '' }, { logprobs })] : []),
          ...calls.map((call, index) => chunk({ tool_calls: [{ index, ...call }] })),
          ...(finish ? [chunk({}, { finish_reason: finish })] : []),
        ];
      },
      end: () => [...(withUsage ? [{ data: { ...about, choices: [], usage } }] : []), { data: '[DONE]' }],
    };
  },
};

/** Answers of the policy server, whole or as the events of a stream, read into what clients get. */
import { z } from 'zod';
import { endOf, messageOf, numbered, parseAnswer, thoughtFilter } from '../policy/wire';
import { callSchema, type ChatRequest, toClientMessage, type WireCall } from './request';

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
      logprobs: z.unknown().optional(),
    }),
  ]),
  usage: usageSchema.optional(),
});

/** An answer as clients get it, but for `id`, `created` and `model`. */
export interface Answer {
  content: string | null;
  calls: WireCall[];
  finish: string;
  logprobs: object | null;
  usage?: Usage;
}
export type Usage = z.output<typeof usageSchema>;

/** Throws PolicyAnswerInvalid, or PolicyServerError where the server aborted the request. */
export function readAnswer(value: unknown, request: ChatRequest): Answer {
  const { choices, usage } = parseAnswer(answerSchema, value, 'the request');
  const [{ message, finish_reason, logprobs }] = choices;
  const said = readMessage(message, request);
  return {
    ...said,
    finish: finishOf(finish_reason, said.calls),
    logprobs: logprobsOf(logprobs, request),
    ...(usage && { usage }),
  };
}

/** Reads a message as the campaign's rollouts do: without thoughts, with unreadable calls as text, and with calls numbered. */
function readMessage(
  message: Parameters<typeof messageOf>[0],
  { messages }: ChatRequest,
): Pick<Answer, 'content' | 'calls'> {
  const { toolCalls, ...said } = messageOf(message);
  const before = messages.map((one) => ({
    role: one.role,
    ...(one.role === 'assistant' && { toolCalls: one.tool_calls ?? [] }),
    ...(one.role === 'tool' && { toolCallId: one.tool_call_id }),
  }));
  return toClientMessage({ ...said, ...(toolCalls && { toolCalls: numbered(toolCalls, before, 'call') }) });
}

function finishOf(finish: (typeof finishReasons)[number], calls: Answer['calls']): string {
  const end = endOf(finish);
  return end === 'tool_calls' && calls.length === 0 ? 'stop' : end;
}

const logprobsOf = (logprobs: unknown, request: ChatRequest): object | null =>
  request.logprobs && logprobs ? parseAnswer(logprobsSchema, logprobs, 'logprobs') : null;

const callPartSchema = z.object({
  index: z.int().min(0).max(999),
  function: z.object({ name: z.string().nullish(), arguments: z.string().nullish() }).default({}),
});
const partSchema = z.object({
  choices: z.array(
    z.object({
      delta: z.object({ content: z.string().nullish(), tool_calls: z.array(callPartSchema).nullish() }),
      finish_reason: z.enum(finishReasons).nullish(),
      logprobs: z.unknown().optional(),
    }),
  ),
  usage: usageSchema.nullish(),
});

/** A part of a streamed answer. Calls come with the last part, when it is known whether they can be read. */
export type Part = Partial<Answer>;

/** Returns a function that reads the events of a stream in order and throws as `readAnswer` does. */
export function partReader(request: ChatRequest): (event: unknown) => Part {
  const withoutThoughts = thoughtFilter();
  const called: WireCall[] = [];
  let isSilent = true;
  return (event) => {
    const { choices, usage } = parseAnswer(partSchema, event, 'stream');
    const [{ delta = {}, finish_reason, logprobs } = {} as Partial<(typeof choices)[0]>] = choices;
    for (const { index, function: part } of delta.tool_calls ?? []) {
      const call = (called[index] ??= { id: '', type: 'function', function: { name: '', arguments: '' } });
      call.function.name ||= part.name ?? '';
      call.function.arguments += part.arguments ?? '';
    }
    const text = withoutThoughts(delta.content ?? '') + (finish_reason ? withoutThoughts() : '');
    isSilent &&= text === '';
    const ended = finish_reason ? readMessage({ tool_calls: called.filter(Boolean) }, request) : undefined;
    const unread = ended?.content ? (isSilent ? ended.content : `\n${ended.content}`) : '';
    return {
      content: text + unread || null,
      logprobs: logprobsOf(logprobs, request),
      ...(finish_reason && ended && { calls: ended.calls, finish: finishOf(finish_reason, ended.calls) }),
      ...(usage && { usage }),
    };
  };
}

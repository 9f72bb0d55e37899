/**
 * Converts messages to and from the API's form (docs/policy-server.md). A received assistant message is sent back unchanged, so that the rendered prompt
 * continues the sampled ids.
 */
import { z } from 'zod';
import { OutsideFailure } from '../domain/failures';
import { firstIssue } from '../domain/issues';
import {
  argumentsOf,
  type AssistantMessage,
  type Message,
  readArguments,
  type ToolCall,
  type ToolSchema,
} from '../domain/messages';
import { toWellFormed } from '../domain/plain-text';
import type { FixedPolicy, Sampling } from '../domain/rollout';

export interface Turn {
  message: AssistantMessage;
  /** `length`: cut off, by the sampling's maxTokens, the end of the context, or a server that saw it repeat itself. */
  finishReason: 'stop' | 'tool_calls' | 'length';
  promptIds: number[];
  /** The sampled ids, end of turn included. */
  tokenIds: number[];
  /** The log-probs of the sampled ids at temperature 1, in nats. */
  logprobs: number[];
}

export interface TurnRequest {
  /** The messages hold its prompt already. */
  policy: FixedPolicy;
  messages: Message[];
  tools: ToolSchema[];
  sampling: Sampling;
  seed: number;
  /** The ids of the row that the turn is to continue, the last of them sampled; without it a row begins. */
  before?: readonly number[];
  signal?: AbortSignal;
}

export function toWireMessage(message: Message): object {
  if (message.role === 'tool') return { role: 'tool', tool_call_id: message.toolCallId, content: message.content };
  if (message.role !== 'assistant' || !message.toolCalls?.length)
    return { role: message.role, content: message.content };
  return { role: 'assistant', content: message.content, tool_calls: callsOf(message) };
}

export const callsOf = ({ toolCalls = [] }: Pick<AssistantMessage, 'toolCalls'>) =>
  toolCalls.map((call) => ({
    id: call.id,
    type: 'function' as const,
    function: { name: call.name, arguments: argumentsOf(call) },
  }));

/** The policy sees name, description and parameters of a tool, not its annotations and output schema. */
export const toWireTools = (tools: readonly ToolSchema[]) =>
  tools.map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } }));

/**
 * Sampling without truncation and penalties. vLLM takes what a request omits from the model's generation_config.json, so every request has these fields
 * and temperature, top_p and max_tokens.
 */
export const AS_IT_IS = { top_k: -1, min_p: 0, repetition_penalty: 1, presence_penalty: 0, frequency_penalty: 0 };

export function completionBody(turn: Omit<TurnRequest, 'policy' | 'signal' | 'before'> & { model: string }) {
  const { model, messages, tools, sampling, seed } = turn;
  return {
    model,
    messages: messages.map(toWireMessage),
    ...(tools.length > 0 && { tools: toWireTools(tools) }),
    ...sampledAs(sampling),
    seed,
    logprobs: true,
    /** A field of vLLM: asks for the ids of prompt and sample. */
    return_token_ids: true,
  };
}

/** Returns all fields of a body that determine how its answer is sampled, except the seed. */
export const sampledAs = ({ maxTokens, temperature, topP, thinking }: Sampling) => ({
  ...AS_IT_IS,
  max_tokens: maxTokens,
  temperature,
  top_p: topP,
  ...(thinking === 'off' && { chat_template_kwargs: { enable_thinking: false } }),
});

export const callSchema = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) });
type WireCall = z.infer<typeof callSchema>;

export const wordsSchema = z.object({ content: z.string().nullish(), tool_calls: z.array(callSchema).nullish() });
export const finishSchema = z.enum(['stop', 'tool_calls', 'length', 'repetition', 'abort']);

const completionSchema = z.object({
  choices: z.tuple([
    z.object({
      message: wordsSchema,
      finish_reason: finishSchema,
      logprobs: z.object({ content: z.array(z.object({ logprob: z.number() })) }),
      token_ids: z.array(z.number()),
    }),
  ]),
  prompt_token_ids: z.array(z.number()),
});

/** Reads an answer to a chat completion. Throws PolicyAnswerInvalid with the missing field. */
export function parseTurn(body: unknown): Turn {
  const parsed = parseAnswer(completionSchema, body, 'return_token_ids and logprobs');
  const { message, ...sampled } = parsed.choices[0];
  return { message: messageOf(message), promptIds: parsed.prompt_token_ids, ...sampledTurn(sampled) };
}

export const messageOf = ({ content, tool_calls }: z.infer<typeof wordsSchema>): AssistantMessage =>
  toAssistantMessage(withoutThinking(content ?? ''), tool_calls ?? []);

/** Removes the thoughts that a server without a reasoning parser leaves in the text. Only the policy sees them. */
function withoutThinking(content: string): string {
  const end = content.indexOf(THOUGHT);
  if (end >= 0) return content.slice(end + THOUGHT.length).trimStart();
  return content.trimStart().startsWith(THINK) ? '' : content;
}
const [THINK, THOUGHT] = ['<think>', '</think>'];

/** A stop at a repetition cuts the answer off, too. Throws PolicyServerError for an answer that the server aborted. */
export function endOf<Reason extends string>(reason: Reason): Exclude<Reason, 'abort' | 'repetition'> | 'length' {
  if (reason === 'abort')
    throw new OutsideFailure('PolicyServerError', 'policy server aborted an answer (finish_reason abort)');
  return reason === 'repetition' ? 'length' : (reason as Exclude<Reason, 'abort' | 'repetition'>);
}

export type GeneratedTurn = Omit<Turn, 'message' | 'promptIds'>;

function sampledTurn(o: Omit<z.infer<typeof completionSchema>['choices'][0], 'message'>): GeneratedTurn {
  const { finish_reason, logprobs, token_ids } = o;
  if (logprobs.content.length !== token_ids.length) {
    throw invalid(`logprobs.content has ${logprobs.content.length} entries for ${token_ids.length} token_ids`);
  }
  return {
    finishReason: endOf(finish_reason),
    tokenIds: token_ids,
    logprobs: logprobs.content.map(({ logprob }) => logprob),
  };
}

const renderedSchema = z.looseObject({
  token_ids: z.array(z.number()),
  sampling_params: z.record(z.string(), z.unknown()),
});
/** A chat request in token ids: the body of `generate` for its answer. */
export type Rendered = z.infer<typeof renderedSchema>;

export const parseRendered = (body: unknown): Rendered => parseAnswer(renderedSchema, body, 'what a chat request asks');

/** Returns the body that samples after other ids. */
export const generateBody = (rendered: Rendered, promptIds: readonly number[]) => ({
  ...rendered,
  token_ids: promptIds,
});

const generatedSchema = z.object({
  choices: z.tuple([completionSchema.shape.choices.def.items[0].omit({ message: true })]),
});

export const parseGenerated = (body: unknown): GeneratedTurn =>
  sampledTurn(parseAnswer(generatedSchema, body, 'logprobs').choices[0]);

/** Returns the body that asks for the message of sampled ids. */
export function derenderBody(o: {
  asked: Parameters<typeof completionBody>[0];
  promptIds: readonly number[];
  sampled: GeneratedTurn;
}) {
  const { finishReason, tokenIds } = o.sampled;
  const chat_request = completionBody(o.asked);
  // The end of the turn is no part of the message.
  const token_ids = finishReason === 'length' || tokenIds.length === 1 ? tokenIds : tokenIds.slice(0, -1);
  return {
    model: chat_request.model,
    chat_request,
    prompt_token_ids: o.promptIds,
    generate_response: { choices: [{ index: 0, token_ids, finish_reason: finishReason }] },
  };
}

const derenderedSchema = z.object({ choices: z.tuple([z.object({ message: wordsSchema })]) });

export function parseDerendered(body: unknown, sampled: GeneratedTurn): Omit<Turn, 'promptIds'> {
  const message = messageOf(parseAnswer(derenderedSchema, body, 'the chat request').choices[0].message);
  return { ...sampled, message, ...(message.toolCalls && { finishReason: 'tool_calls' }) };
}

/** Calls whose arguments are no JSON object are the policy's mistake. They stay in the text, where the environment sees them. */
export function toAssistantMessage(content: string, calls: WireCall[]): AssistantMessage {
  const toolCalls: ToolCall[] = [];
  const malformed: string[] = [];
  for (const { id, function: called } of calls) {
    const given = readArguments(called.arguments);
    if (given) toolCalls.push({ id, name: toWellFormed(called.name), ...given });
    else malformed.push(`${called.name}(${called.arguments})`);
  }
  const text = toWellFormed([content, ...malformed].filter(Boolean).join('\n'));
  return toolCalls.length > 0 ? { role: 'assistant', content: text, toolCalls } : { role: 'assistant', content: text };
}

interface Numbered {
  role: string;
  toolCalls?: readonly { id: string }[] | undefined;
  toolCallId?: string;
}

/** Numbers the calls through the conversation, because servers may give the first call of every turn the same id. */
export function numbered<Call extends { id: string }>(
  calls: Call[],
  before: readonly Numbered[],
  name: string,
): Call[] {
  const earlier = before.flatMap(({ role, toolCalls = [] }) => (role === 'assistant' ? toolCalls : []));
  const ids = [...earlier.map(({ id }) => id), ...before.flatMap(({ toolCallId }) => toolCallId ?? [])];
  const pattern = new RegExp(`^${name}_(\\d{1,9})$`);
  // The conversation may lack its beginning.
  const next = ids.reduce((most, id) => Math.max(most, Number(pattern.exec(id)?.[1] ?? -1) + 1), earlier.length);
  return calls.map((call, n) => ({ ...call, id: `${name}_${next + n}` }));
}

/** Throws PolicyAnswerInvalid. `honours` names the fields of the request that ask for what the schema needs. */
export function parseAnswer<Schema extends z.ZodType>(
  schema: Schema,
  body: unknown,
  honours: string,
): z.output<Schema> {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  throw invalid(`${firstIssue(parsed.error, body)}; it must honour ${honours}`);
}

const invalid = (problem: string) => new OutsideFailure('PolicyAnswerInvalid', `policy server's answer: ${problem}`);

export const ONE_TOKEN: Sampling = { temperature: 0, topP: 1, maxTokens: 1 };

export const tokenBody = (model: string, messages: Message[] = [{ role: 'user', content: 'hello' }]) =>
  completionBody({ model, messages, tools: [], sampling: ONE_TOKEN, seed: 0 });

/** The body of a completion that returns the log-probs of its prompt. The one token that it samples is not used. */
export const scoreBody = ({ model, ids }: { model: string; ids: readonly number[] }) => ({
  model,
  prompt: ids,
  ...sampledAs(ONE_TOKEN),
  /** A field of vLLM: 0 asks for each id of the prompt and no alternatives. */
  prompt_logprobs: 0,
});

const scoresSchema = z.object({
  choices: z.tuple([
    z.object({ prompt_logprobs: z.array(z.record(z.string(), z.object({ logprob: z.number() })).nullable()) }),
  ]),
});

/** Returns the log-probs of all prompt ids except the first. Throws PolicyAnswerInvalid. */
export function parseScores(body: unknown, ids: readonly number[]): number[] {
  const parsed = parseAnswer(scoresSchema, body, 'prompt_logprobs');
  const scores = parsed.choices[0].prompt_logprobs;
  return ids.slice(1).map((id, n) => {
    const logprob = scores[n + 1]?.[id]?.logprob;
    if (logprob === undefined) throw invalid(`prompt_logprobs.${n + 1}: nothing of id ${id}`);
    return logprob;
  });
}

/** The most alternatives that vLLM returns unless it is started with --max-logprobs. */
const MAX_ALTERNATIVES = 20;

/** The body of a chat completion that returns the likeliest first tokens. */
export const likeliestBody = (model: string, messages: Message[]) => ({
  ...tokenBody(model, messages),
  top_logprobs: MAX_ALTERNATIVES,
});

const likelySchema = z.object({
  token: z.string(),
  logprob: z.number(),
});
export type LikelyToken = z.infer<typeof likelySchema>;
const alternativesSchema = z.object({ top_logprobs: z.array(likelySchema).min(1) });
const likeliestSchema = z.object({
  choices: z.tuple([z.object({ logprobs: z.object({ content: z.tuple([alternativesSchema]).rest(z.unknown()) }) })]),
});

export const parseLikeliest = (body: unknown): LikelyToken[] =>
  parseAnswer(likeliestSchema, body, 'top_logprobs').choices[0].logprobs.content[0].top_logprobs;

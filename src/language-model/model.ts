/**
 * A language model behind any OpenAI-compatible endpoint. What was kept is not asked and never paid for again; equal questions of one process are asked
 * one after the other, so that the first reply serves all; one question is one request. Whatever goes wrong leaves as an OutsideFailure; the key is
 * known here only.
 */
import { digest } from '../artifacts/hash';
import { createTurns, limited } from '../domain/concurrency';
import type { LanguageModelSpec, ModelUsage, Price } from '../domain/endpoints';
import { isFailure, OutsideFailure } from '../domain/failures';
import { ApiError, type Caller, callerFailure, type Endpoint, endpointFailure, keyOf, openEndpoint } from './endpoint';
import { forgetLost, isLostForGood, LOST_IN_A_ROW, rateLimiterFor } from './limits';
import { PartialReply } from './reply';

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

export interface ModelReply {
  text: string;
  /** As the endpoint says it: `stop`, `length` (cut off by maxTokens), `content_filter`, ... */
  finish: string;
  usage: ModelUsage;
}

/** What is asked. Equal questions are one question: they get one reply. */
export interface Question {
  messages: readonly ChatMessage[];
  /** Tells passes apart that ask the same. */
  seed: number;
}

/** Replies that were paid for, of all campaigns of a home, and what one campaign spent. */
export interface Ledger {
  find(key: string): Promise<ModelReply | undefined>;
  /** Throws BudgetSpent where the request's expected cost does not fit the budget. */
  permit(request: PermitRequest): Promise<void>;
  /** Counts the payment and stores the reply. Where it can't be stored, it is held: the next `find` of the process stores it. */
  keep(
    key: string,
    kept: { reply: ModelReply; question: Question; step: string; price?: Price | undefined },
  ): Promise<void>;
  /** Counts what was paid for and is stored nowhere: a request that brought no reply, or those of one rollout. Never fails. */
  count(paid: Paid): Promise<void>;
  /** A piece of some reply has come. */
  onText?(piece: string): void;
}

export interface Paid {
  usage: ModelUsage;
  /** One, unless it is said. */
  requests?: number;
  step: string;
  price?: Price | undefined;
}

interface PermitRequest {
  /** Aborts when the request has ended, whatever came of it: until then it counts as being asked. */
  ended: AbortSignal;
  /** Field of the campaign file that names the model. */
  field: string;
  price?: Price | undefined;
}

/** What a part that asks is given, beside the question. */
export interface Asking {
  ledger: Ledger;
  /** What is being done, for people: a row of the report's costs. */
  step: string;
  signal: AbortSignal;
}

export interface LanguageModel {
  /** What determines replies, for keys: model, sampling, further parameters; not where it is. */
  readonly id: Record<string, unknown>;
  /** The most that a question may have, where that is known. */
  readonly promptTokens?: number;
  /** The kept reply, or a new one, which is kept first. Throws an OutsideFailure. */
  ask(question: Question, asking: Asking): Promise<ModelReply>;
}

/** Of all questions that are being asked in this process. */
const inTurn = createTurns();

/** `field`: of the campaign file, such as `analyst`. Needs neither key nor network until something is asked. */
export function openLanguageModel(field: string, spec: LanguageModelSpec): LanguageModel {
  const { model, temperature, maxTokens, parameters, contextTokens, concurrency, requestsPerMinute, price } = spec;
  const id = { model, temperature, maxTokens, parameters };
  const limiter = rateLimiterFor(spec);
  const caller: LanguageModelCaller = { field, spec, failures, remedy: (error) => remedyOf({ field, spec }, error) };
  let connection: Connection | undefined;

  async function askNew(key: string, question: Question, asking: Asking): Promise<ModelReply> {
    const { ledger, signal, step } = asking;
    const kept = await ledger.find(key);
    if (kept) return kept;
    connection ??= connect(caller);
    const tooLong = (ms: number) => {
      const problem = `it asked to be left alone for another ${Math.ceil(ms / 1000)} s`;
      return callerFailure(caller, { type: failures.unavailable, problem, retryAfterMs: ms });
    };
    const leave = await limiter.enter({ concurrency, requestsPerMinute, signal, tooLong });
    const ended = new AbortController();
    try {
      await ledger.permit({ ended: ended.signal, field, price });
      const reply = await request({ ...connection, caller, key, question, asking });
      await ledger.keep(key, { reply, question, step, price });
      // Another process may have been first: what was kept counts for both.
      return (await ledger.find(key)) ?? reply;
    } finally {
      ended.abort();
      leave();
    }
  }

  return {
    id,
    promptTokens: contextTokens - maxTokens,
    async ask({ messages, seed }, asking) {
      const key = digest({ id, messages, seed });
      return inTurn(key, () => askNew(key, { messages, seed }, asking), asking.signal);
    },
  };
}

interface LanguageModelCaller extends Caller {
  spec: LanguageModelSpec;
}

interface Connection {
  endpoint: Endpoint;
  apiKey: string | undefined;
}

const failures = {
  unavailable: 'LanguageModelUnavailable',
  failed: 'LanguageModelFailed',
  rejected: 'LanguageModelRejected',
} as const;

/** A key that is missing is what every request would meet, as a refused one: it is about the campaign, and no capability's or pass's own. */
function connect(caller: LanguageModelCaller): Connection {
  const { field, spec } = caller;
  try {
    const apiKey = keyOf(`${field}.apiKeyEnv`, spec);
    return { apiKey, endpoint: openEndpoint({ url: spec.url, key: apiKey }) };
  } catch (error) {
    if (!isFailure(error, 'BadInput')) throw error;
    throw callerFailure(caller, { type: failures.rejected, problem: error.message });
  }
}

/** Fields of a request that not every model takes, and what is sent in their place. */
const REPLACED: Record<string, string> = { max_tokens: ', max_completion_tokens: N' };
const TOO_LONG = /context.{0,20}(length|window|size)|(prompt|input|request).{0,20}too (long|large)/i;

function remedyOf({ field, spec }: Pick<LanguageModelCaller, 'field' | 'spec'>, { status, message }: ApiError): string {
  if (status === 413 || TOO_LONG.test(message))
    return `lower ${field}.contextTokens (${spec.contextTokens}), of which ${field}.maxTokens (${spec.maxTokens}) are the reply's`;
  const optional = ['max_tokens', 'temperature', 'seed', 'stream_options', 'stream', ...Object.keys(spec.parameters)];
  const refused = optional.find((name) => new RegExp(`\\b${name}\\b`).test(message));
  return refused === undefined
    ? `correct ${field}.model or ${field}.parameters`
    : `if it does not take ${refused}, set ${field}.parameters: {${refused}: null${REPLACED[refused] ?? ''}}`;
}

async function request(
  o: Connection & { caller: LanguageModelCaller; key: string; question: Question; asking: Asking },
): Promise<ModelReply> {
  const { endpoint, apiKey, caller, key, question, asking } = o;
  const { field, spec } = caller;
  const { timeoutSeconds, maxTokens, url, price } = spec;
  const limiter = rateLimiterFor(spec);
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), timeoutSeconds * 1000);
  const onText = (piece: string): void => {
    timer.refresh();
    asking.ledger.onText?.(piece);
  };
  const partial = new PartialReply({ question, maxTokens, onText });
  /** How it is asked, as far as the loss of its replies may be mended there. */
  const way = JSON.stringify([key, url, timeoutSeconds]);
  try {
    const signal = AbortSignal.any([asking.signal, silence.signal]);
    const body = bodyOf(spec, question);
    const reply = await limited(partial.read(endpoint, { path: '/chat/completions', body, signal }));
    limiter.replied();
    forgetLost(way);
    return withoutKey(reply, apiKey);
  } catch (error) {
    const isSilent = silence.signal.aborted;
    const problem = `no word of a reply for ${timeoutSeconds} s (${field}.timeoutSeconds)`;
    const failure = isSilent
      ? callerFailure(caller, { type: failures.failed, problem })
      : endpointFailure(caller, error);
    const lost = { usage: partial.usage(), step: asking.step, price };
    if (asking.signal.aborted) {
      // The request was sent, so it is paid for.
      if (failure.type === failures.failed) await asking.ledger.count(lost);
      asking.signal.throwIfAborted();
    }
    if (error instanceof ApiError && error.isCrowded) limiter.refused(failure.retryAfterMs);
    if (!isSilent && !(partial.begun && failure.type === failures.failed)) throw failure;
    const isLast = isLostForGood(way);
    await asking.ledger.count(lost);
    throw isLast ? noMore(caller, failure) : failure;
  } finally {
    clearTimeout(timer);
  }
}

/** Each try is paid for. */
function noMore({ field, spec }: LanguageModelCaller, { message }: OutsideFailure): OutsideFailure {
  const fix = `raise ${field}.timeoutSeconds (${spec.timeoutSeconds}), lower ${field}.maxTokens (${spec.maxTokens}) or see to its endpoint`;
  const times = `${LOST_IN_A_ROW} times in a row, so this question is not asked again`;
  return new OutsideFailure('RepliesLost', `${message}; ${times}: ${fix}, and run the same command`);
}

/** A shorter one may be a word, such as the `none` of servers that want any key: what is kept would be without that word for ever. */
const SHORTEST_KEY = 16;

/** An endpoint may say anything, also what it was sent. */
const withoutKey = (reply: ModelReply, key: string | undefined): ModelReply =>
  key === undefined || key.length < SHORTEST_KEY ? reply : { ...reply, text: reply.text.replaceAll(key, '(key)') };

function bodyOf(spec: LanguageModelSpec, { messages, seed }: Question): object {
  const fields = {
    model: spec.model,
    messages,
    max_tokens: spec.maxTokens,
    temperature: spec.temperature,
    seed,
    stream: true,
    stream_options: { include_usage: true },
    ...spec.parameters,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}

/**
 * A language model behind any OpenAI-compatible endpoint. Invariants: what was kept is not asked; equal questions of one process are asked one
 * after the other, so that the first reply serves all; one question is one request, which is repeated by whoever asked or by nobody; whatever
 * goes wrong leaves as an OutsideFailure; the key is known here only.
 */
import type OpenAI from 'openai';
import { digest } from '../artifacts/hash';
import { orAborted } from '../domain/concurrency';
import type { LanguageModelSpec } from '../domain/endpoints';
import { isFailure, OutsideFailure } from '../domain/failures';
import { apiErrorOf, type ApiError, type Caller, callerFailure, endpointFailure, keyOf, openClient } from './endpoint';
import { forgetLost, isLostForGood, LOST_IN_A_ROW, type RateLimiter, rateLimiterFor } from './limits';
import { PartialReply, readReply } from './reply';
import type { Asking, LanguageModel, ModelReply, Question } from './types';

/** `field`: of the campaign file, such as `analyst`. Needs neither key nor network until something is asked. */
export function openLanguageModel(field: string, spec: LanguageModelSpec): LanguageModel {
  const { model, temperature, maxTokens, parameters, contextTokens } = spec;
  const id = { model, temperature, maxTokens, parameters };
  const limiter = rateLimiterFor(spec);
  let client: { caller: LanguageModelCaller; openai: OpenAI } | undefined;
  const connected = () => (client ??= connect(field, spec));

  return {
    id,
    promptTokens: contextTokens - maxTokens,
    async ask(question, asking) {
      const { messages, seed } = question;
      const key = digest({ id, messages, seed });
      return oneAtATime(key, asking, async (progressed) => {
        const kept = await asking.ledger.find(key);
        if (kept) return kept;
        const onPiece = (piece: string): void => {
          hear(asking, piece);
          limiter.progressed();
          progressed();
        };
        return withinLimits({ ...connected(), limiter, asking }, async () => {
          const reply = await request({ ...connected(), key, limiter, question, asking, onPiece });
          await asking.ledger.keep(key, { reply, question: { messages, seed }, step: asking.step, price: spec.price });
          // Another process may have been first: what was kept counts for both.
          return (await asking.ledger.find(key)) ?? reply;
        });
      });
    },
  };
}

interface LanguageModelCaller extends Caller {
  spec: LanguageModelSpec;
}

function connect(field: string, spec: LanguageModelSpec): { caller: LanguageModelCaller; openai: OpenAI } {
  const key = keyFor({ field, spec });
  const remedy = (error: ApiError) => remedyOf({ field, spec }, error);
  return { caller: { field, spec, key, failures, remedy }, openai: openClient({ url: spec.url, key }) };
}

const failures = {
  unavailable: 'LanguageModelUnavailable',
  failed: 'LanguageModelFailed',
  rejected: 'LanguageModelRejected',
} as const;

/** What every request would meet, as a refused key: it is about the campaign, and no capability's or pass's own. */
function keyFor({ field, spec }: Pick<LanguageModelCaller, 'field' | 'spec'>): string | undefined {
  try {
    return keyOf(`${field}.apiKeyEnv`, spec.apiKeyEnv);
  } catch (error) {
    if (!isFailure(error, 'BadInput')) throw error;
    throw callerFailure({ field, spec }, { type: failures.rejected, problem: error.message });
  }
}

/** Fields of a request that not every model takes, and what is sent in their place. */
const REPLACED: Record<string, string> = { max_tokens: ', max_completion_tokens: N' };
const TOO_LONG = /context.{0,20}(length|window|size)|(prompt|input|request).{0,20}too (long|large)/i;

function remedyOf({ field, spec }: Pick<LanguageModelCaller, 'field' | 'spec'>, { status, reason }: ApiError): string {
  if (status === 413 || TOO_LONG.test(reason))
    return `lower ${field}.contextTokens (${spec.contextTokens}), of which ${field}.maxTokens (${spec.maxTokens}) are the reply's`;
  const optional = ['max_tokens', 'temperature', 'seed', 'stream_options', 'stream', ...Object.keys(spec.parameters)];
  const refused = optional.find((name) => new RegExp(`\\b${name}\\b`).test(reason));
  return refused === undefined
    ? `correct ${field}.model or ${field}.parameters`
    : `if it does not take ${refused}, set ${field}.parameters: {${refused}: null${REPLACED[refused] ?? ''}}`;
}

/** Each try is paid for. */
function noMore({ field, spec }: LanguageModelCaller, failure: OutsideFailure): OutsideFailure {
  const fix = `raise ${field}.timeoutSeconds (${spec.timeoutSeconds}), lower ${field}.maxTokens (${spec.maxTokens}) or see to its endpoint`;
  const message = `${failure.message}; ${LOST_IN_A_ROW} times in a row, so this question is not asked again: ${fix}, and run the same command`;
  return new OutsideFailure('RepliesLost', message);
}

const silent = (caller: LanguageModelCaller): OutsideFailure => {
  const { timeoutSeconds } = caller.spec;
  const problem = `no word of a reply for ${timeoutSeconds} s (${caller.field}.timeoutSeconds)`;
  return callerFailure(caller, { type: failures.failed, problem });
};

function hear({ onText, ledger }: Asking, piece: string): void {
  onText?.();
  ledger.heard?.(piece);
}

/** Waits for room on the way to the endpoint, and for leave to spend. */
async function withinLimits<Result>(
  { caller, limiter, asking }: { caller: LanguageModelCaller; limiter: RateLimiter; asking: Asking },
  work: () => Promise<Result>,
): Promise<Result> {
  const { field, spec } = caller;
  const { concurrency, requestsPerMinute, price } = spec;
  const leave = await limiter.enter({
    ...{ concurrency, requestsPerMinute, signal: asking.signal },
    onWaiting: () => hear(asking, ''),
    tooLong: (ms) => unavailable(caller, ms),
  });
  const ended = new AbortController();
  try {
    await asking.ledger.permit({ ended: ended.signal, field, price });
    return await work();
  } finally {
    ended.abort();
    leave();
  }
}

const unavailable = (caller: LanguageModelCaller, retryAfterMs: number) =>
  callerFailure(caller, {
    type: 'LanguageModelUnavailable',
    problem: `it asked to be left alone for another ${Math.ceil(retryAfterMs / 1000)} s`,
    retryAfterMs,
  });

async function request(o: {
  caller: LanguageModelCaller;
  openai: OpenAI;
  /** Of the question. */
  key: string;
  limiter: RateLimiter;
  question: Question;
  asking: Asking;
  onPiece: (piece: string) => void;
}): Promise<ModelReply> {
  const { caller, openai, key, limiter, question, asking, onPiece } = o;
  const { timeoutSeconds, maxTokens, url } = caller.spec;
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), timeoutSeconds * 1000);
  const heard = (piece: string): void => {
    timer.refresh();
    onPiece(piece);
  };
  const partial = new PartialReply({ question, maxTokens, onPiece: heard });
  const way = { key, url, timeoutSeconds };
  try {
    const signal = AbortSignal.any([asking.signal, silence.signal]);
    const body = bodyOf(caller.spec, question);
    const response = await openai.chat.completions.create(body, { signal }).asResponse();
    heard('');
    const reply = await readReply({ client: openai, response, reply: partial });
    limiter.replied();
    forgetLost(way);
    return withoutKey(reply, caller.key);
  } catch (error) {
    const isSilent = silence.signal.aborted;
    const failure = isSilent ? silent(caller) : endpointFailure(caller, error);
    const lost = { usage: partial.usage(), step: asking.step, price: caller.spec.price };
    if (asking.signal.aborted) {
      // It was asked, and is paid for, whoever wants the answer. That it could not be counted is no reason to go on.
      if (failure.type === 'LanguageModelFailed') await asking.ledger.count(lost).catch(() => undefined);
      asking.signal.throwIfAborted();
    }
    if (apiErrorOf(error, caller.key).isCrowded) limiter.refused(failure.retryAfterMs);
    const isLost = isSilent || (partial.begun && failure.type === 'LanguageModelFailed');
    if (!isLost) throw failure;
    const isLast = isLostForGood(way);
    await asking.ledger.count(lost);
    throw isLast ? noMore(caller, failure) : failure;
  } finally {
    clearTimeout(timer);
  }
}

/** A shorter one may be a word, such as the `none` of servers that want any key: what is kept would be without that word for ever. */
const SHORTEST_KEY = 16;

/** An endpoint may say anything, also what it was sent. */
const withoutKey = (reply: ModelReply, key: string | undefined): ModelReply =>
  key === undefined || key.length < SHORTEST_KEY ? reply : { ...reply, text: reply.text.replaceAll(key, '(key)') };

function bodyOf(spec: LanguageModelSpec, { messages, seed }: Question) {
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
  const sent = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
  return sent as unknown as OpenAI.ChatCompletionCreateParamsStreaming;
}

/** Questions that are being asked, each with those who wait for it to end. */
const asked = new Map<string, { ended: Promise<void>; waiting: Set<() => void> }>();

/** Work of one key, one after the other; who waits hears of the progress of whoever has the turn. */
async function oneAtATime<Result>(
  key: string,
  asking: Asking,
  work: (progressed: () => void) => Promise<Result>,
): Promise<Result> {
  const onWaiting = () => hear(asking, '');
  for (let before = asked.get(key); before; before = asked.get(key)) {
    before.waiting.add(onWaiting);
    await orAborted(before.ended, asking.signal).finally(() => before?.waiting.delete(onWaiting));
  }
  let end = (): void => undefined;
  const mine = { ended: new Promise<void>((resolve) => (end = resolve)), waiting: new Set<() => void>() };
  asked.set(key, mine);
  try {
    asking.signal.throwIfAborted();
    return await work(() => mine.waiting.forEach((heard) => heard()));
  } finally {
    asked.delete(key);
    end();
  }
}

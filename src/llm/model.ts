/**
 * A language model behind any OpenAI-compatible endpoint. A stored reply is never paid for again. Equal questions of one process are asked one at a time, so
 * that the first reply serves all. One question is one request. Every error is thrown as an OutsideFailure.
 */
import { digest } from '../store/hash';
import { createLimit, createTurns } from '../domain/concurrency';
import type { LanguageModelSpec, ModelUsage, Price } from '../domain/endpoints';
import { isFailure, OutsideFailure } from '../domain/failures';
import { getOrMake } from '../domain/maps';
import { type ModelClient, openModelClient } from './client';

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  content: string;
}

export interface ModelReply {
  text: string;
  /** The word of the endpoint: `stop`, `length` (cut off by maxTokens), `content_filter`, ... */
  finish: string;
  usage: ModelUsage;
}

/** Equal questions get one reply. */
export interface Question {
  messages: readonly ChatMessage[];
  /** Differs between passes with equal messages. */
  seed: number;
}

/** Stores the replies for all campaigns of a home, and counts the payments of one campaign. */
export interface Ledger {
  find(key: string): Promise<ModelReply | undefined>;
  /** Throws BudgetSpent where the request's expected cost does not fit the budget. */
  permit(request: PermitRequest): Promise<void>;
  /** Counts the payment and stores the reply. Where it can't be stored, it is held: the next `find` of the process stores it. */
  keep(
    key: string,
    kept: { reply: ModelReply; question: Question; step: string; price?: Price | undefined },
  ): Promise<void>;
  /** Counts payments without a stored reply: a request that brought none, or the requests of one rollout. Never fails. */
  count(paid: Paid): Promise<void>;
}

export interface Paid {
  usage: ModelUsage;
  requests?: number;
  step: string;
  price?: Price | undefined;
}

interface PermitRequest {
  /** Aborts when the request has ended. Until then it counts as under way. */
  ended: AbortSignal;
  /** Field of the campaign file that names the model. */
  field: string;
  price?: Price | undefined;
}

export interface Asking {
  ledger: Ledger;
  step: string;
  signal: AbortSignal;
}

export interface LanguageModel {
  /** Model, sampling and further parameters, for keys. The address is no part of it. */
  readonly id: Record<string, unknown>;
  /** Limit of a question, where it is known. */
  readonly promptTokens?: number;
  /** Returns the stored reply, or stores and returns a new one. Throws an OutsideFailure. */
  ask(question: Question, asking: Asking): Promise<ModelReply>;
}

const inTurn = createTurns();

const limits = new Map<string, ReturnType<typeof createLimit>>();

/** Returns the limit of all parts of this process that ask the model. */
const limitOf = ({ url, model, concurrency }: LanguageModelSpec): ReturnType<typeof createLimit> =>
  getOrMake(limits, JSON.stringify([url, model, concurrency]), () => createLimit(concurrency));

/** Limit of a whole reply, as a multiple of the limit of one wait for data. */
const WAITS = 12;

/** `field` is that of the campaign file, such as `analyst`. The key is read with the first question. */
export function openLanguageModel(field: string, spec: LanguageModelSpec): LanguageModel {
  const { model, temperature, maxTokens, parameters, contextTokens, price } = spec;
  const id = { model, temperature, maxTokens, parameters };
  const inLimit = limitOf(spec);
  let client: ModelClient | undefined;

  async function request(question: Question, { ledger, signal, step }: Asking): Promise<ModelReply> {
    client ??= connect(field, spec);
    const { text, refusal, finish, usage } = await client.ask(bodyOf(spec, question), {
      signal,
      onLost: (lost) => ledger.count({ usage: lost, step, price }),
    });
    return refusal !== '' && text === '' ? { text: refusal, finish: 'content_filter', usage } : { text, finish, usage };
  }

  async function askNew(key: string, question: Question, asking: Asking): Promise<ModelReply> {
    const { ledger, signal, step } = asking;
    const kept = await ledger.find(key);
    if (kept) return kept;
    return inLimit(async () => {
      const ended = new AbortController();
      try {
        await ledger.permit({ ended: ended.signal, field, price });
        const reply = await request(question, asking);
        await ledger.keep(key, { reply, question, step, price });
        // The reply of another process that was first counts for both.
        return (await ledger.find(key)) ?? reply;
      } finally {
        ended.abort();
      }
    }, signal);
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

/** These count as faults of the step, because each try may be billed. */
const failed = { late: 'LanguageModelFailed', lost: 'LanguageModelFailed', unusable: 'LanguageModelFailed' } as const;
const failures = { unavailable: 'LanguageModelUnavailable', rejected: 'LanguageModelRejected', ...failed } as const;

/** A missing key fails the campaign as a rejected one does, since it affects every request. */
function connect(field: string, spec: LanguageModelSpec): ModelClient {
  try {
    return openModelClient({ field, spec, failures, totalSeconds: WAITS * spec.timeoutSeconds });
  } catch (error) {
    if (!isFailure(error, 'BadInput')) throw error;
    throw new OutsideFailure('LanguageModelRejected', error.message);
  }
}

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

/** A language model and what is kept of it. Invariant: a reply that was kept is never paid for again. */
import type { ModelUsage, Price } from '../domain/endpoints';

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
  /** Throws BudgetSpent where nothing may be asked any more; its message says what was spent and how to go on. */
  permit(request: PermitRequest): Promise<void>;
  /** The reply is durable and counted once this resolves. Where it can't be written, it is held: the next `find` of the process writes it. */
  keep(
    key: string,
    kept: { reply: ModelReply; question: Question; step: string; price?: Price | undefined },
  ): Promise<void>;
  /** Counts what was paid for and is kept nowhere: a request that brought no reply, or those of one rollout. Where it can't be written, it is held. */
  count(paid: Paid): Promise<void>;
  /** A piece of some reply has come. */
  onText?(piece: string): void;
}

export interface Paid {
  /** Of one that is counted again since it could not be written: it counts once. */
  id?: string;
  usage: ModelUsage;
  /** One, unless it is said. */
  requests?: number;
  step: string;
  price?: Price | undefined;
}

export interface PermitRequest {
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

/**
 * A language model behind any OpenAI-compatible endpoint. Invariants: what was kept is not asked; equal questions of one process are asked one
 * after the other, so that the first reply serves all; one question is one request, which is repeated by whoever asked or by nobody; whatever
 * goes wrong leaves as an OutsideFailure; the key is known here only.
 */
import type OpenAI from 'openai';
import { digest } from '../artifacts/hash';
import type { LanguageModelSpec } from '../domain/endpoints';
import { failureOf, isCrowded, modelFailure, type Named, noMore, openClient, sentKeyOf, silent } from './endpoint';
import { forgetLost, isLostForGood, type Lane, laneTo, LOST_IN_A_ROW, orAborted } from './limits';
import { Growing, readReply } from './reply';
import type { Asking, LanguageModel, ModelReply, Question } from './types';

/** `field`: of the campaign file, such as `analyst`. Needs neither key nor network until something is asked. */
export function openLanguageModel(field: string, spec: LanguageModelSpec): LanguageModel {
  const { model, temperature, maxTokens, parameters, contextTokens } = spec;
  const id = { model, temperature, maxTokens, parameters };
  const lane = laneTo(spec);
  let client: { named: Named; openai: OpenAI } | undefined;
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
          lane.progressed();
          progressed();
        };
        return inLane({ ...connected(), lane, asking }, async () => {
          const reply = await request({ ...connected(), key, lane, question, asking, onPiece });
          await asking.ledger.keep(key, { reply, question: { messages, seed }, step: asking.step, price: spec.price });
          // Another process may have been first: what was kept counts for both.
          return (await asking.ledger.find(key)) ?? reply;
        });
      });
    },
  };
}

function connect(field: string, spec: LanguageModelSpec): { named: Named; openai: OpenAI } {
  const key = sentKeyOf({ field, spec });
  return { named: { field, spec, key }, openai: openClient({ url: spec.url, key }) };
}

function hear({ onText, ledger }: Asking, piece: string): void {
  onText?.();
  ledger.heard?.(piece);
}

/** Waits for room on the way to the endpoint, and for leave to spend. */
async function inLane<Result>(
  { named, lane, asking }: { named: Named; lane: Lane; asking: Asking },
  work: () => Promise<Result>,
): Promise<Result> {
  const { field, spec } = named;
  const { concurrency, requestsPerMinute, price } = spec;
  const leave = await lane.enter({
    ...{ concurrency, requestsPerMinute, signal: asking.signal },
    onWaiting: () => hear(asking, ''),
    tooLong: (ms) => unavailable(named, ms),
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

const unavailable = (named: Named, retryAfterMs: number) =>
  modelFailure(named, {
    type: 'LanguageModelUnavailable',
    problem: `it asked to be left alone for another ${Math.ceil(retryAfterMs / 1000)} s`,
    retryAfterMs,
  });

async function request(o: {
  named: Named;
  openai: OpenAI;
  /** Of the question. */
  key: string;
  lane: Lane;
  question: Question;
  asking: Asking;
  onPiece: (piece: string) => void;
}): Promise<ModelReply> {
  const { named, openai, key, lane, question, asking, onPiece } = o;
  const { timeoutSeconds, maxTokens, url } = named.spec;
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), timeoutSeconds * 1000);
  const heard = (piece: string): void => {
    timer.refresh();
    onPiece(piece);
  };
  const growing = new Growing({ question, maxTokens, onPiece: heard });
  const way = { key, url, timeoutSeconds };
  try {
    const signal = AbortSignal.any([asking.signal, silence.signal]);
    const body = bodyOf(named.spec, question);
    const response = await openai.chat.completions.create(body, { signal }).asResponse();
    heard('');
    const reply = await readReply({ client: openai, response, reply: growing });
    lane.replied();
    forgetLost(way);
    return withoutKey(reply, named.key);
  } catch (error) {
    const isSilent = silence.signal.aborted;
    const failure = isSilent ? silent(named) : failureOf(named, error);
    const lost = { usage: growing.usage(), step: asking.step, price: named.spec.price };
    if (asking.signal.aborted) {
      // It was asked, and is paid for, whoever wants the answer. That it could not be counted is no reason to go on.
      if (failure.type === 'LanguageModelFailed') await asking.ledger.count(lost).catch(() => undefined);
      asking.signal.throwIfAborted();
    }
    if (isCrowded(error)) lane.refused(failure.retryAfterMs);
    const isLost = isSilent || (growing.begun && failure.type === 'LanguageModelFailed');
    if (!isLost) throw failure;
    const isLast = isLostForGood(way);
    await asking.ledger.count(lost);
    throw isLast ? noMore(named, { failure, times: LOST_IN_A_ROW }) : failure;
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

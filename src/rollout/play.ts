/**
 * The agent loop plays one attempt of a policy at a task. It returns a reward of the environment, or throws an OutsideFailure or the reason of the abort.
 * A rollout's `messages` are those of the environment and the policy, without the policy's own prompt, which is in the rollout's key.
 */
import { seedOf } from '../store/hash';
import type { Context, Environment, Episode, StopReason } from '../domain/environment';
import { isFailure, OutsideFailure, reasonOf } from '../domain/failures';
import { agentView, type AssistantMessage, type Message, openingOf, type ToolSchema } from '../domain/messages';
import type { FixedPolicy, Policy, Prompt, Sampling, ScoredRollout } from '../domain/rollout';
import type { PolicyClient } from '../policy/client';
import { numbered, type Turn, type TurnRequest } from '../policy/wire';
import type { Resolve, Resolved } from './resolve';
import { createRowBuilder } from './training-batch';
import { isDeepStrictEqual } from 'node:util';

type Planned = Pick<ScoredRollout, 'key' | 'task' | 'attempt'>;

export interface PlayOptions {
  environment: Environment;
  client: Pick<PolicyClient, 'sample'>;
  policy: Policy;
  resolve?: Resolve;
  sampling: Sampling;
  /** The environment's seed, which all attempts at a task share. */
  seed: number;
  /** A lower limit than the environment's own. */
  maxSteps?: number;
  onTurn?: () => void;
  signal: AbortSignal;
}

/** Sampling seed of a turn: depends on the rollout's key and the turn's index alone. */
export const turnSeed = ({ key, turn }: { key: string; turn: number }): number => seedOf(`${key}/${turn}`);

export const choiceSeed = (key: string): number => seedOf(`${key}/choice`);

export async function play(planned: Planned, options: PlayOptions): Promise<ScoredRollout> {
  const { key, task, attempt } = planned;
  const { environment, seed, signal } = options;
  const started = performance.now();
  const episode = await fromEnvironment(() => environment.reset({ id: task, seed }, signal));
  try {
    const { policy, ...routed } = await resolved(key, episode, options);
    const { stopReason, ...played } = await converse({ key, episode, policy, options });
    const evaluation = await fromEnvironment(() => episode.evaluate(stopReason));
    const seconds = Math.round(performance.now() - started) / 1000;
    return { status: 'scored', key, task, attempt, ...routed, stopReason, ...evaluation, ...played, seconds };
  } finally {
    // The rollout has been scored or has failed already; a failure to close the episode changes neither.
    await episode.close().catch(() => undefined);
  }
}

async function resolved(key: string, { start }: Episode, { policy, resolve, signal }: PlayOptions): Promise<Resolved> {
  if (!('router' in policy)) return { policy };
  if (!resolve) throw new TypeError('a routed policy is played with a resolver: give `resolve` (rollout/resolve.ts)');
  return resolve(policy, { messages: agentView(start.messages), tools: start.tools, seed: choiceSeed(key), signal });
}

type Conversation = Pick<ScoredRollout, 'messages' | 'stopReason' | 'rows' | 'steps' | 'usage'>;

async function converse(o: {
  key: string;
  episode: Episode;
  policy: FixedPolicy;
  options: PlayOptions;
}): Promise<Conversation> {
  const { key, episode, policy, options } = o;
  const { client, sampling, signal } = options;
  const { start } = episode;
  const maxSteps = Math.min(options.maxSteps ?? Infinity, start.maxSteps);
  const messages = [...start.messages];
  const rows = createRowBuilder();
  const contexts = createContexts();
  let context: Context = { messages: agentView(messages), tools: start.tools };
  let opening = context.messages;
  const usage = { promptTokens: 0, completionTokens: 0 };
  const ended = (stopReason: StopReason, steps: number) => ({ messages, stopReason, rows: rows.rows(), steps, usage });

  for (let step = 0; step < maxSteps; step++) {
    const { tools } = context;
    const since = context.messages.slice(opening.length);
    const shown = withPrompt(opening, policy.prompt);
    const known = contexts.before(context);
    // If the agent has inserted an answer of its own after the known messages, their ids do not continue.
    const isContinued = context.messages.findLastIndex(({ role }) => role === 'assistant') < known.length;
    const seen = isContinued ? known.ids : [];
    const request = { policy, tools, sampling, signal, seed: turnSeed({ key, turn: step }) };
    const before = sampling.thinking === 'stripped' ? {} : { before: seen };
    const turn = await sampleWithinContext(client, { ...request, messages: [...shown, ...since], ...before });
    if (!turn) return ended('context_length', step);
    const sampled = { promptTokens: turn.promptIds.length, completionTokens: turn.tokenIds.length };
    usage.promptTokens += sampled.promptTokens;
    usage.completionTokens += sampled.completionTokens;
    const { toolCalls } = turn.message;
    const message = { ...turn.message, ...(toolCalls && { toolCalls: numbered(toolCalls, messages, 'call') }) };
    const answered = { messages: [...context.messages, message], tools };
    contexts.add(answered, [...turn.promptIds, ...turn.tokenIds]);
    const result = await fromEnvironment(() => episode.step(message, { ...sampled, finishReason: turn.finishReason }));
    if (result.unheard) return ended(result.stopReason ?? 'agent_stop', step);
    rows.add(turn, onlyReads(turn.message, tools));
    messages.push(message);
    if (result.context) {
      context = result.context;
      opening = openingOf(context.messages);
      messages.push(...context.messages.slice(contexts.before(context).length));
    } else {
      context = { messages: [...answered.messages, ...agentView(result.messages)], tools };
      messages.push(...result.messages);
    }
    options.onTurn?.();
    if (result.done) return ended(result.stopReason ?? 'agent_stop', step + 1);
    signal.throwIfAborted();
  }
  return ended('max_steps', maxSteps);
}

/** Returns undefined if the conversation no longer fits into the model's context. */
const sampleWithinContext = (client: Pick<PolicyClient, 'sample'>, request: TurnRequest): Promise<Turn | undefined> =>
  client.sample(request).catch((error: unknown) => {
    if (isFailure(error, 'ContextLengthExceeded')) return undefined;
    throw error;
  });

const onlyReads = ({ toolCalls = [] }: AssistantMessage, tools: readonly ToolSchema[]): boolean =>
  toolCalls.length > 0 &&
  toolCalls.every((call) => tools.find(({ name }) => name === call.name)?.annotations?.readOnlyHint);

/** Turns any error of an environment into its failure. An error with type BadEnvironment is not retried. */
async function fromEnvironment<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof OutsideFailure) throw error;
    const type = (error as { type?: unknown }).type === 'BadEnvironment' ? 'BadEnvironment' : 'EnvironmentFailed';
    throw new OutsideFailure(type, `environment: ${reasonOf(error)}`, error);
  }
}

/** Returns the opening with a text in its first system message, which is added if there is none. */
function inSystemMessage(opening: readonly Message[], text: string, join: (system: string) => string): Message[] {
  const at = opening.findIndex(({ role }) => role === 'system');
  const system = opening[at];
  if (!system) return [{ role: 'system', content: text }, ...opening];
  return opening.with(at, { role: 'system', content: join(system.content) });
}

/** Returns the opening with the prompt above the first system message's text, or in place of all system messages. */
export function withPrompt(opening: readonly Message[], prompt: Prompt | undefined): Message[] {
  if (!prompt) return [...opening];
  const { text, place } = prompt;
  if (place === 'before') return inSystemMessage(opening, text, (system) => `${text}\n\n${system}`);
  const first = opening.findIndex(({ role }) => role === 'system');
  return inSystemMessage(
    opening.filter(({ role }, n) => role !== 'system' || n === first),
    text,
    () => text,
  );
}

interface Known {
  length: number;
  ids: readonly number[];
}

function createContexts() {
  const answered: { context: Context; ids: Known['ids'] }[] = [];
  return {
    before({ messages, tools }: Context): Known {
      let longest: Known = { length: 0, ids: [] };
      for (const { context, ids } of answered.toReversed()) {
        const { length } = context.messages;
        if (length <= longest.length || length > messages.length) continue;
        if (!isDeepStrictEqual(context.tools, tools)) continue;
        if (context.messages.every((message, n) => isSame(message, messages[n]!))) longest = { length, ids };
      }
      return longest;
    },
    /** `context`: with the answer. */
    add: (context: Context, ids: Known['ids']): void => void answered.push({ context, ids }),
  };
}

/** Compares messages as agents send them back: white space around a text and in the arguments of calls may be gone. */
function isSame(one: Message, other: Message): boolean {
  if (one === other) return true;
  if (one.role !== 'assistant' || other.role !== 'assistant') return isDeepStrictEqual(one, other);
  const calls = (message: typeof one) =>
    (message.toolCalls ?? []).map(({ id, name, arguments: given }) => ({ id, name, arguments: given }));
  return one.content.trim() === other.content.trim() && isDeepStrictEqual(calls(one), calls(other));
}

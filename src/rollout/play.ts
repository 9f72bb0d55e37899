/**
 * The agent loop: one attempt of a policy at a task. Invariants: it ends with a reward from the environment, or throws an
 * OutsideFailure (or the reason of the abort), there is no third way; a rollout's `messages` are what the environment and the policy
 * said to each other, without the policy's own prompt, which stands in the policy and so in the rollout's key.
 */
import { evaluationSchema, type Environment, type Episode, type StopReason } from '../domain/environment';
import { isFailure, OutsideFailure, reasonOf } from '../domain/failures';
import { agentView, type AssistantMessage, type Message, type ToolSchema } from '../domain/messages';
import type { FixedPolicy, Policy, Sampling, ScoredRollout } from '../domain/rollout';
import type { PolicyClient } from '../policy/client';
import type { Turn } from '../policy/turn';
import { promptIdsOf, withHint } from './hints';
import { choiceSeed, turnSeed, type PlannedRollout } from './keys';
import { withPrompt } from './prompt';
import type { Resolve, Resolved } from './resolve';
import { createRowBuilder } from './rows';

export interface PlayOptions {
  environment: Environment;
  client: Pick<PolicyClient, 'sample'>;
  policy: Policy;
  /** Needed for a routed policy. */
  resolve?: Resolve;
  sampling: Sampling;
  /** Of the environment; all attempts at a task get the same. */
  seed: number;
  /** A lower limit than the environment's own. */
  maxSteps?: number;
  /** After every finished turn. */
  onTurn?: () => void;
  signal: AbortSignal;
}

export async function play(planned: PlannedRollout, options: PlayOptions): Promise<ScoredRollout> {
  const { key, task, attempt, hinted } = planned;
  const started = performance.now();
  const episode = await fromEnvironment(() =>
    options.environment.reset({ id: task, seed: options.seed }, options.signal),
  );
  try {
    const { policy, ...routed } = await resolved(key, episode, options);
    const hint = hinted ? episode.start.hint : undefined;
    const { stopReason, ...played } = await converse({ key, episode, hint, policy, options });
    const evaluation = await fromEnvironment(async () => evaluationSchema.parse(await episode.evaluate(stopReason)));
    const seconds = Math.round(performance.now() - started) / 1000;
    const about = { key, task, attempt, ...(hint !== undefined && { hinted: true as const }), ...routed };
    return { status: 'scored', ...about, stopReason, ...evaluation, ...played, seconds };
  } finally {
    // The rollout stands or has failed already; an episode that can't be closed changes neither.
    await episode.close().catch(() => undefined);
  }
}

async function resolved(key: string, { start }: Episode, { policy, resolve, signal }: PlayOptions): Promise<Resolved> {
  if (!('router' in policy)) return { policy };
  if (!resolve) throw new TypeError('a routed policy is played with a resolver: give `resolve` (rollout/resolve.ts)');
  return resolve(policy, { messages: agentView(start.messages), tools: start.tools, seed: choiceSeed(key), signal });
}

type Conversation = Pick<ScoredRollout, 'messages' | 'stopReason' | 'rows' | 'steps' | 'usage'>;

async function converse({
  key,
  episode,
  hint,
  policy,
  options,
}: {
  key: string;
  episode: Episode;
  hint: string | undefined;
  policy: FixedPolicy;
  options: PlayOptions;
}): Promise<Conversation> {
  const { client, sampling, signal } = options;
  const { start } = episode;
  const maxSteps = Math.min(options.maxSteps ?? Infinity, start.maxSteps);
  const opening = withPrompt(agentView(start.messages), policy.prompt);
  const shown = hint === undefined ? opening : withHint(opening, hint);
  const readOnly = readOnlyTools(start.tools);
  const messages = [...start.messages];
  const rows = createRowBuilder();
  const usage = { promptTokens: 0, completionTokens: 0 };
  const ended = (stopReason: StopReason, steps: number) => ({ messages, stopReason, rows: rows.rows(), steps, usage });

  for (let step = 0; step < maxSteps; step++) {
    const said = agentView(messages.slice(start.messages.length));
    const asked = { policy, tools: start.tools, sampling, signal, seed: turnSeed({ key, turn: step }) };
    const turn = await sampleWithinContext(client, { ...asked, messages: [...shown, ...said] });
    if (!turn) return ended('context_length', step);
    usage.promptTokens += turn.promptIds.length;
    usage.completionTokens += turn.tokenIds.length;
    const promptIds =
      hint === undefined ? turn.promptIds : await promptIdsOf(client, { ...asked, messages: [...opening, ...said] });
    if (hint !== undefined) usage.promptTokens += promptIds.length;
    rows.add({ ...turn, promptIds }, onlyReads(turn.message, readOnly));
    const message = withUniqueIds(turn.message, messages);
    messages.push(message);
    const result = await fromEnvironment(() => episode.step(message));
    messages.push(...result.messages);
    options.onTurn?.();
    if (result.done) return ended(result.stopReason ?? 'agent_stop', step + 1);
    signal.throwIfAborted();
  }
  return ended('max_steps', maxSteps);
}

/** Numbers the calls through the conversation: servers may give every turn's first call the same id, and readers match results by id. */
function withUniqueIds(message: AssistantMessage, before: readonly Message[]): AssistantMessage {
  if (!message.toolCalls) return message;
  const earlier = before.reduce((n, m) => n + (m.role === 'assistant' ? (m.toolCalls?.length ?? 0) : 0), 0);
  return { ...message, toolCalls: message.toolCalls.map((call, n) => ({ ...call, id: `call_${earlier + n}` })) };
}

/** Undefined if the conversation no longer fits into the model's context. */
async function sampleWithinContext(
  client: Pick<PolicyClient, 'sample'>,
  request: Parameters<PolicyClient['sample']>[0],
): Promise<Turn | undefined> {
  try {
    return await client.sample(request);
  } catch (error) {
    if (isFailure(error, 'ContextLengthExceeded')) return undefined;
    throw error;
  }
}

const readOnlySets = new WeakMap<ToolSchema[], Set<string>>();

function readOnlyTools(tools: ToolSchema[]): Set<string> {
  const known = readOnlySets.get(tools) ?? new Set(tools.filter((t) => t.annotations?.readOnlyHint).map((t) => t.name));
  readOnlySets.set(tools, known);
  return known;
}

function onlyReads({ toolCalls = [] }: AssistantMessage, readOnly: Set<string>): boolean {
  return toolCalls.length > 0 && toolCalls.every(({ name }) => readOnly.has(name));
}

/** Whatever an environment throws is its failure; some say themselves that trying again is of no use. */
async function fromEnvironment<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof OutsideFailure) throw error;
    const type = (error as { type?: unknown }).type === 'BadEnvironment' ? 'BadEnvironment' : 'EnvironmentFailed';
    throw new OutsideFailure(type, `environment: ${reasonOf(error)}`, error);
  }
}

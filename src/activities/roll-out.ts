/**
 * Batches of rollouts: the engine, with heartbeats on every finished rollout and cancellation that keeps what is done; and a look at the base model
 * before the base rollouts are spent. Invariant: its few rollouts are asked for exactly as the base rollouts are, so that they have the same keys and
 * are not made again.
 */
import { BATCH_ATTEMPTS, OutsideFailure } from '../domain/failures';
import { brokenFailure, type RolloutSummary } from '../domain/rollout';
import { countDurable, rollOut as playBatch, type RollOutProgress } from '../rollout/engine';
import { createResolver, type Resolve } from '../rollout/resolve';
import { type PolicyDependencies, modelFolder } from './context';
import { activitySignal, countFaults, markProgress, progress } from './heartbeat';
import { inputsOf, resolveTasks, TEST_TEXTS } from './tasks';
import type { PoolInput, RollOutInput } from './types';
import { CHECKED_TASKS, judgeBase, type BaseCheck } from '../domain/base-check';
import { tryAdapter } from '../policy/client';
import type { Training } from '../domain/campaign';

/** One resolver a worker: it keeps the routers that it has opened. */
const resolvers = new WeakMap<PolicyDependencies['client'], Resolve>();

function resolverOf({ store, kinds, python, client }: PolicyDependencies): Resolve {
  const known = resolvers.get(client);
  if (known) return known;
  const resolve = createResolver({ store, routers: kinds.routers, context: { python, client } });
  resolvers.set(client, resolve);
  return resolve;
}

export async function rollOut(deps: PolicyDependencies, input: RollOutInput): Promise<RolloutSummary> {
  const { summary, outcomes } = await play(deps, input);
  const failure = brokenFailure(outcomes, input.title);
  // The next attempt plays the broken rollouts again; the last one leaves them out.
  if (failure?.retryable && countFaults() < BATCH_ATTEMPTS - 1)
    throw new OutsideFailure('RolloutsBroken', failure.message, failure);
  return summary;
}

/** Plays a batch, or one attempt at each of its first `count` tasks. */
async function play(deps: PolicyDependencies, input: RollOutInput, count?: number) {
  const { store, environments, client } = deps;
  const { campaign, budget, purpose, title } = input;
  progress({ kind: 'rollouts', title, done: 0, total: 0, broken: 0 });
  const read = environments.paidBy({ campaign, budget, step: TEST_TEXTS });
  const [environment, tasks] = await Promise.all([
    environments.paidBy({ campaign, budget, step: purpose }).get(input.environment),
    resolveTasks({ store, environments: read }, input),
  ]);
  const batch = await playBatch({
    ...input,
    ...(count !== undefined && { attempts: 1 }),
    environment,
    tasks: tasks.slice(0, count),
    resolve: resolverOf(deps),
    inputs: inputsOf(input),
    store,
    client,
    signal: activitySignal(),
    onProgress: showBatch(title),
  });
  return { environment, ...batch };
}

function showBatch(title: string): (progress: RollOutProgress) => void {
  const noteDurable = countDurable(markProgress);
  return ({ done, total, broken }) => {
    progress({ kind: 'rollouts', title, done, total, broken });
    noteDurable({ done, broken });
  };
}

const TITLE = 'base model check';

/** Checks that the policy server takes adapters of this rank times the number of merged ones. */
export async function checkAdapters(
  deps: PolicyDependencies,
  {
    base,
    lora: { r, targetModules },
    summed,
  }: PoolInput & { base: string; lora: Pick<Training['lora'], 'r' | 'targetModules'>; summed: number },
): Promise<void> {
  const { store, client, python } = deps;
  const signal = activitySignal();
  const model = await modelFolder(deps, base);
  progress({ kind: 'analysis', title: 'try an adapter', done: 0, total: 1 });
  await tryAdapter({ store, client, python, base, model, targetModules, rank: r * summed, signal });
}

/** `rollouts`: the base rollouts, of which the first few are made and looked at. */
export async function checkBase(
  deps: PolicyDependencies,
  { rollouts: input }: PoolInput & { rollouts: RollOutInput },
): Promise<BaseCheck> {
  const { environment, summary, records } = await play(deps, { ...input, title: TITLE }, CHECKED_TASKS);
  const rollouts = (await records()).filter((rollout) => rollout.status === 'scored');
  const { tools } = await environment.describe();
  return { rollouts: summary.ref, ...judgeBase({ rollouts, tools: tools.map(({ name }) => name) }) };
}

/** Batches of rollouts, and a check of the base model before them. Rollouts of the check have the keys of base rollouts and are reused. */
import { BATCH_ATTEMPTS, OutsideFailure } from '../domain/failures';
import { brokenFailure, type RolloutSummary } from '../domain/rollout';
import { countDurable, rollOut as playBatch } from '../rollout/engine';
import { type PolicyDependencies, type RolloutDependencies, modelFolder } from './context';
import { activitySignal, countFaults, markProgress, progress } from './heartbeat';
import { inputsOf, resolveTasks, TEST_TEXTS } from './tasks';
import type { PoolInput, RollOutInput } from './types';
import { CHECKED_TASKS, judgeBase, type BaseCheck } from '../domain/base-check';
import { tryAdapter } from '../policy/client';
import type { Training } from '../domain/campaign';

export async function rollOut(deps: RolloutDependencies, input: RollOutInput): Promise<RolloutSummary> {
  const { summary, outcomes } = await play(deps, input);
  const failure = brokenFailure(outcomes, input.title);
  // The next attempt plays the broken rollouts again; the last one leaves them out.
  if (failure?.retryable && countFaults() < BATCH_ATTEMPTS - 1)
    throw new OutsideFailure('RolloutsBroken', failure.message, failure);
  return summary;
}

/** Plays a batch, or one attempt at each of its first `count` tasks. */
async function play(deps: RolloutDependencies, input: RollOutInput, count?: number) {
  const { store, environments, client } = deps;
  const { campaign, budget, purpose, title } = input;
  progress({ kind: 'rollouts', title, done: 0, total: 0, broken: 0 });
  const read = environments.paidBy({ campaign, budget, step: TEST_TEXTS });
  const [environment, tasks] = await Promise.all([
    environments.paidBy({ campaign, budget, step: purpose }).get(input.environment),
    resolveTasks({ store, environments: read }, input),
  ]);
  const noteDurable = countDurable(markProgress);
  const batch = await playBatch({
    ...input,
    ...(count !== undefined && { attempts: 1 }),
    environment,
    tasks: tasks.slice(0, count),
    resolve: deps.resolve,
    inputs: inputsOf(input),
    store,
    client,
    signal: activitySignal(),
    onProgress: ({ done, total, broken }) => {
      progress({ kind: 'rollouts', title, done, total, broken });
      noteDurable({ done, broken });
    },
  });
  return { environment, ...batch };
}

/** Checks that the policy server takes adapters of this rank times the number of merged ones. */
export async function checkAdapters(
  deps: PolicyDependencies,
  {
    base,
    lora: { r, targetModules },
    merged,
  }: PoolInput & { base: string; lora: Pick<Training['lora'], 'r' | 'targetModules'>; merged: number },
): Promise<void> {
  const { store, client, python } = deps;
  const signal = activitySignal();
  const model = await modelFolder(deps, base);
  progress({ kind: 'analysis', title: 'try an adapter', done: 0, total: 1 });
  await tryAdapter({ store, client, python, base, model, targetModules, rank: r * merged, signal });
}

export async function checkBase(
  deps: RolloutDependencies,
  { rollouts: input }: PoolInput & { rollouts: RollOutInput },
): Promise<BaseCheck> {
  const { environment, summary, records } = await play(deps, { ...input, title: 'base model check' }, CHECKED_TASKS);
  const rollouts = (await records()).filter((rollout) => rollout.status === 'scored');
  const { tools } = await environment.describe();
  return { rollouts: summary.ref, ...judgeBase({ rollouts, tools: tools.map(({ name }) => name) }) };
}

/** One batch of rollouts: the engine, with heartbeats on every finished rollout and cancellation that keeps what is done. */
import { Context } from '@temporalio/activity';
import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs, type RolloutHeartbeat } from '../domain/work';
import { brokenFailure, type RolloutSummary } from '../domain/rollout';
import { rollOut as playBatch, type RollOutProgress } from '../rollout/engine';
import { createResolver, type Resolve } from '../rollout/resolve';
import type { PolicyDependencies } from './context';
import { inputsOf, resolveTasks, TEST_TEXTS } from './tasks';
import { withHeartbeats } from '../training/run-learner';
import type { RollOutInput } from './types';

/**
 * A short outage (a server that is too busy for a few seconds) breaks rollouts whose absence would choose a checkpoint or shrink the test set:
 * those that may succeed are made again so many times, a quarter of a minute in all.
 */
const TIMES_FOR_BROKEN = 5;

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
  const { store, environments, client } = deps;
  const context = Context.current();
  const { title } = input;
  const progress = (): void =>
    context.heartbeat({ kind: 'rollouts', title, done: 0, total: 0, broken: 0 } satisfies RolloutHeartbeat);
  const { campaign, budget, purpose } = input;
  const read = environments.paidBy({ campaign, budget, step: TEST_TEXTS });
  const [environment, tasks] = await Promise.all([
    environments.paidBy({ campaign, budget, step: purpose }).get(input.environment),
    resolveTasks({ store, environments: read, progress }, input),
  ]);
  let last: RollOutProgress = { done: 0, total: tasks.length * input.attempts, broken: 0, turns: 0 };
  const beat = () => context.heartbeat({ kind: 'rollouts', title, ...last } satisfies RolloutHeartbeat);
  for (let time = 1; ; time++) {
    const { summary, outcomes } = await playBatch({
      ...input,
      environment,
      tasks,
      resolve: resolverOf(deps),
      inputs: inputsOf(input),
      store,
      client: withHeartbeats(client, beat),
      signal: context.cancellationSignal,
      onProgress: (progress) => {
        last = progress;
        beat();
      },
    });
    if (time === TIMES_FOR_BROKEN || !brokenFailure(outcomes, title)?.retryable) return summary;
    await sleep(backoffMs(time), undefined, { signal: context.cancellationSignal });
  }
}

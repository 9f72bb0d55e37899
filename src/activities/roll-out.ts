/** One batch of rollouts: the engine, with heartbeats on every finished rollout and cancellation that keeps what is done. */
import { Context } from '@temporalio/activity';
import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs, BATCH_ATTEMPTS } from '../domain/failures';
import { brokenFailure, type RolloutSummary } from '../domain/rollout';
import { limited } from '../domain/concurrency';
import { observing } from '../metrics';
import { rollOut as playBatch } from '../rollout/engine';
import { createResolver, type Resolve } from '../rollout/resolve';
import { type PolicyDependencies, progress } from './context';
import { inputsOf, resolveTasks, TEST_TEXTS } from './tasks';
import type { RollOutInput } from './types';

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
  const { cancellationSignal: signal } = Context.current();
  const { campaign, budget, purpose, title } = input;
  progress({ kind: 'rollouts', title, done: 0, total: 0, broken: 0 });
  const read = environments.paidBy({ campaign, budget, step: TEST_TEXTS });
  const [environment, tasks] = await Promise.all([
    environments.paidBy({ campaign, budget, step: purpose }).get(input.environment),
    resolveTasks({ store, environments: read }, input),
  ]);
  for (let time = 1; ; time++) {
    const { summary, outcomes } = await playBatch({
      ...input,
      environment,
      tasks,
      resolve: resolverOf(deps),
      inputs: inputsOf(input),
      store,
      client,
      signal,
      observe: observing(purpose, input.policy),
      onProgress: ({ done, total, broken }) => progress({ kind: 'rollouts', title, done, total, broken }),
    });
    if (time === BATCH_ATTEMPTS || !brokenFailure(outcomes, title)?.retryable) return summary;
    await limited(sleep(backoffMs(time), undefined, { signal }));
  }
}

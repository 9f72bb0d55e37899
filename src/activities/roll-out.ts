/** One batch of rollouts: the engine, with heartbeats on every finished rollout and cancellation that keeps what is done. */
import { Context } from '@temporalio/activity';
import type { RolloutHeartbeat } from '../domain/progress';
import { rollOut } from '../rollout/engine';
import { createResolver } from '../rollout/resolve';
import type { RolloutActivities } from './types';
import type { PolicyDependencies } from './context';
import { inputsOf, resolveTasks } from './tasks';

export function createRollOut({
  store,
  environments,
  client,
  kinds,
  python,
}: PolicyDependencies): Pick<RolloutActivities, 'rollOut'> {
  const resolve = createResolver({ store, routers: kinds.routers, context: { python, client } });
  return {
    async rollOut(input) {
      const context = Context.current();
      const [environment, tasks] = await Promise.all([
        environments.get(input.environment),
        resolveTasks(store, input.tasks),
      ]);
      const { title } = input;
      const { summary } = await rollOut({
        ...input,
        environment,
        tasks,
        resolve,
        inputs: inputsOf(input),
        store,
        client,
        signal: context.cancellationSignal,
        onProgress: (progress) => {
          context.heartbeat({ kind: 'rollouts', title, ...progress } satisfies RolloutHeartbeat);
        },
      });
      return summary;
    },
  };
}

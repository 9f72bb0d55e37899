/** One batch of rollouts: the engine, with heartbeats on every finished rollout and cancellation that keeps what is done. */
import { Context } from '@temporalio/activity';
import { rollOut } from '../rollout/engine';
import type { RolloutHeartbeat } from '../workflows/messages';
import type { RolloutActivities } from './types';
import type { PolicyDependencies } from './context';
import { inputsOf, resolveTasks } from './tasks';

export function createRollOut({ store, environments, client }: PolicyDependencies): RolloutActivities {
  return {
    async rollOut(input) {
      const context = Context.current();
      const [environment, tasks] = await Promise.all([
        environments.get(input.environment),
        resolveTasks(store, input.tasks),
      ]);
      return rollOut({
        ...input,
        environment,
        tasks,
        maskReadOnlyTurns: true,
        inputs: inputsOf(input),
        store,
        client,
        signal: context.cancellationSignal,
        onProgress: (progress) => {
          context.heartbeat({ kind: 'rollouts', purpose: input.purpose, ...progress } satisfies RolloutHeartbeat);
        },
      });
    },
  };
}

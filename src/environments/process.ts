/**
 * An environment in another process, behind the Environment interface. Invariant: an episode lives and dies with the run of the
 * process that it began in; the next reset starts the process again.
 */
import type { Environment, Episode } from '../domain/environment';
import { connect, type Connection, type ProcessCommand } from './connection';

/** Starts the process on the first request. Any number of episodes may be open at once. */
export function openProcessEnvironment(command: ProcessCommand): Environment {
  let connection: Connection | undefined;

  function connected(): Connection {
    if (!connection || connection.failure) connection = connect(command);
    return connection;
  }

  return {
    describe: () => connected().request('describe', {}),
    tasks: async (split) => (await connected().request('tasks', { split })).tasks,
    async reset(task): Promise<Episode> {
      const run = connected();
      const { episode, ...start } = await run.request('reset', { task });
      return {
        start,
        step: (message) => run.request('step', { episode, message }),
        evaluate: (reason) => run.request('evaluate', { episode, reason }),
        close: async () => void (await run.request('close', { episode })),
      };
    },
    async close() {
      await connection?.close();
      connection = undefined;
    },
  };
}

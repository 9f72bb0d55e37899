/** `campaign worker`. */
import { type QueueName } from '../domain/work';
import { clusterAt } from '../temporal/connection';
import { runWorkers } from '../workers/worker';
import { type CommonOptions, homeOf } from './options';
import { makeHome, pythonPath } from './project';

type WorkerOptions = CommonOptions & { queues: QueueName[]; plugin?: string[] };

/** Runs steps of task queues until it is asked to stop. Exit code 3: all its steps failed. */
export async function worker(options: WorkerOptions): Promise<void> {
  process.setSourceMapsEnabled(true);
  // Its log may be on a disk that is full for a while.
  for (const log of [process.stdout, process.stderr]) log.on('error', () => undefined);
  const { root } = homeOf(options);
  await makeHome(root);
  const { queues, plugin: plugins = [], temporalAddress } = options;
  await runWorkers({ home: root, python: pythonPath(), queues, plugins, cluster: clusterAt(temporalAddress) });
}

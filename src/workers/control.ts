/** Control worker: workflows, and the short steps between the long ones. */
import { createControlActivities } from '../activities';
import { taskQueues } from '../domain/work';
import { bundlePath } from './bundle';
import { dependencies, main, runWorker } from './runtime';

main(async () => {
  const deps = dependencies();
  return runWorker(deps, {
    taskQueue: taskQueues.control(await deps.store.id()),
    workflowBundle: { codePath: bundlePath },
    activities: createControlActivities(deps),
    // Label passes read all rollouts at once: a few at a time keep memory bounded.
    maxConcurrentActivityTaskExecutions: 4,
  });
});

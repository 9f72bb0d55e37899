/** Control worker: workflows, and the short steps between the long ones. */
import { createControlActivities } from '../activities';
import { bundlePath } from '../workflows/bundle';
import { taskQueues } from '../workflows/messages';
import { dependencies, main, runWorker } from './runtime';

main(() => {
  const deps = dependencies();
  return runWorker(deps, {
    taskQueue: taskQueues.control,
    workflowBundle: { codePath: bundlePath },
    activities: createControlActivities(deps),
    // Label passes read all rollouts at once: a few at a time keep memory bounded.
    maxConcurrentActivityTaskExecutions: 4,
  });
});

/** GPU worker: one trainer at a time per slot. Start one per GPU group. */
import { createGpuActivities } from '../activities';
import { taskQueues } from '../workflows/messages';
import { policyDependencies, main, runWorker, settings } from './runtime';

main(() => {
  const deps = policyDependencies();
  return runWorker(deps, {
    taskQueue: taskQueues.gpu,
    activities: createGpuActivities(deps),
    maxConcurrentActivityTaskExecutions: settings().gpuSlots,
  });
});

/** Rollout worker: runs batches of rollouts against the policy server. Start as many as the policy server can feed. */
import { createRolloutActivities } from '../activities';
import { taskQueues } from '../workflows/messages';
import { policyDependencies, main, runWorker } from './runtime';

main(() => {
  const deps = policyDependencies();
  return runWorker(deps, {
    taskQueue: taskQueues.rollouts,
    activities: createRolloutActivities(deps),
    // Each batch brings its own concurrency: two keep the policy server full while one of them drains.
    maxConcurrentActivityTaskExecutions: 2,
  });
});

/** Rollout worker: runs batches of rollouts against the policy server. Start as many as the policy server can feed. */
import { createRolloutActivities } from '../activities';
import { taskQueues } from '../domain/work';
import { policyDependencies, main, poolOfWorker, runWorker } from './runtime';

main(() => {
  const deps = policyDependencies();
  return runWorker(deps, {
    taskQueue: taskQueues.rollouts(poolOfWorker()),
    activities: createRolloutActivities(deps),
    // Each batch brings its own concurrency: two keep the policy server full while one of them drains. A search for a prompt has the
    // third place: it takes long, and waits for its language model much of the time.
    maxConcurrentActivityTaskExecutions: 3,
  });
});

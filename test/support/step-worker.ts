/** A worker of the project's own making whose step never ends, or fails at once: its argument says which, `TEMPORAL_ADDRESS` where. */
import { heartbeat } from '@temporalio/activity';
import type { Dependencies } from '../../src/activities/context';
import { fail } from '../../src/activities/failures';
import { clusterAt } from '../../src/temporal/connection';
import { serveQueues } from '../../src/workers/worker';

const nothing = {
  environments: { close: () => Promise.resolve() },
  store: { id: () => Promise.resolve('nobody opens it') },
} as unknown as Dependencies;

const steps: Record<string, () => Promise<never>> = {
  endless: () => {
    heartbeat();
    console.log('at work');
    return new Promise(() => undefined);
  },
  failing: () => Promise.reject(fail('TrainerDied', 'no CUDA device')),
};
const activities = { work: steps[process.argv[2] ?? ''] };
void serveQueues(nothing, [{ taskQueue: 'steps', activities, stopsWhenFaulty: true }], clusterAt());

/** A worker of the project's own making whose step never ends: `TEMPORAL_ADDRESS` says where. It says so when it has the step. */
import { heartbeat } from '@temporalio/activity';
import type { Dependencies } from '../../src/activities/context';
import { main, runWorker } from '../../src/workers/worker';

const nothing = {
  environments: { close: () => Promise.resolve() },
  store: { id: () => Promise.resolve('nobody opens it') },
} as unknown as Dependencies;
main(() =>
  runWorker(nothing, {
    taskQueue: 'steps',
    activities: {
      work: async () => {
        heartbeat();
        console.log('at work');
        await new Promise(() => undefined);
      },
    },
  }),
);

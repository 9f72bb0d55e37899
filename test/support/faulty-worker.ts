/** A worker of the project's own making whose steps all fail at once: `TEMPORAL_ADDRESS` says where. */
import type { Dependencies } from '../../src/activities/context';
import { fail } from '../../src/activities/failures';
import { stoppingWhenFaulty } from '../../src/activities/failures';
import { main, runWorker } from '../../src/workers/worker';

const nothing = {
  environments: { close: () => Promise.resolve() },
  store: { id: () => Promise.resolve('nobody opens it') },
} as unknown as Dependencies;
let onFaulty: (why: string) => void = () => undefined;
const faulty = new Promise<string>((resolve) => (onFaulty = resolve));
const work = () => Promise.reject(fail('TrainerDied', 'no CUDA device'));
main(() =>
  runWorker(
    nothing,
    { taskQueue: 'steps', activities: stoppingWhenFaulty({ work }, { onFaulty: (why) => onFaulty(why) }) },
    faulty,
  ),
);

/** A worker whose steps do what their name says; `TEMPORAL_ADDRESS` names its server. */
import type { Dependencies } from '../../src/activities/context';
import { mapped } from '../../src/activities/errors';
import { OutsideFailure } from '../../src/domain/failures';
import { clusterAt } from '../../src/temporal/connection';
import { serveQueues } from '../../src/workers/worker';

const nothing = {
  home: '',
  environments: { close: () => Promise.resolve() },
  store: { id: () => Promise.resolve('never opened') },
} as unknown as Dependencies;

async function work(name: string): Promise<string> {
  console.log(`begins ${name}`);
  if (name === 'endless' || name === 'waiting') await new Promise(() => undefined);
  if (name === 'failing') throw new OutsideFailure('TrainerDied', 'no CUDA device');
  if (name === 'killing') process.kill(process.pid, 'SIGKILL');
  return name;
}
const activities = mapped({ work }, nothing);
void serveQueues(nothing, [{ taskQueue: 'steps', activities, stopsWhenFaulty: true }], clusterAt());

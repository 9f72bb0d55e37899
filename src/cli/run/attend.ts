/**
 * What a run does at every look at its campaign: it writes down where it stands, gives back what killed workers had, and says when the disk
 * is full.
 */
import type { Temporal } from '../temporal';
import type { Snapshot } from '../watch/snapshot';
import { writeStatus } from '../watch/status-file';
import { giveBackLostWork } from './lost-work';
import type { SupervisedRun } from './supervised-run';

export type Attended = Pick<SupervisedRun, 'home' | 'output' | 'disk'> & { temporal: Temporal };

export async function attend({ home, output, disk, temporal }: Attended, snapshot: Snapshot): Promise<void> {
  disk.isFull();
  await writeStatus({ home: home.root, snapshot });
  if (snapshot.status !== 'RUNNING') return;
  const steps = await giveBackLostWork({ temporal, snapshot });
  const said = steps === 1 ? '1 step of a killed worker begins again' : `${steps} steps of killed workers begin again`;
  if (steps > 0) output.note('campaign', said);
}

/** Files of a home are damaged between two runs and during one: only results that can't be repaired are made again. */
import { setTimeout as sleep } from 'node:timers/promises';
import { damageAll, ways, type PlaceName, type Way } from '../../support/faults-damage';
import type { Scenario } from '../../support/faults-scenario';

/** Places in the home of a campaign that has stopped after its router. */
const groups: Record<string, PlaceName[]> = {
  'what was found out': ['batch', 'labels', 'candidates', 'key entry', 'provenance'],
  environments: ['module', 'calibration'],
  adapters: ['adapter listing', 'adapter file', 'materialised folder', 'training result', 'training metrics'],
  'router and records': ['router', 'status.json', 'report.json'],
};

/** Files that matter only after a kill: the metrics of a training, and the server's address. */
const OF_A_KILLED_RUN: PlaceName[] = ['metrics.jsonl', 'run.json'];

const betweenRuns = (name: string, kinds: readonly PlaceName[], way: Way): Scenario => ({
  name: `damage: ${name}, ${way}`,
  file: 'small',
  from: 'router',
  allow: { madeAgain: true },
  act(session) {
    const found = damageAll(session, kinds, way);
    session.start();
    return Promise.resolve(found);
  },
});

/** Damages the files from which a trainer and the next run would resume after everything was killed. */
const trainersFiles = (way: Way): Scenario => ({
  name: `damage: files of a killed training, ${way}`,
  file: 'small',
  allow: { madeAgain: true },
  async act(session) {
    session.start();
    await session.untilSteps(8);
    await session.killEverything();
    const found = damageAll(session, [...OF_A_KILLED_RUN, 'checkpoint', 'batch.jsonl', 'training marker'], way);
    session.start();
    return found;
  },
});

/** Damaged under the eyes of workers that have read it: found out where it is read again, at the latest by the report. */
const whileRunning = (way: Way): Scenario => ({
  name: `damage: while the campaign runs, ${way}`,
  file: 'small',
  allow: { madeAgain: true },
  async act(session) {
    session.start();
    await session.phase('validation');
    const found = damageAll(session, ['batch', 'module', 'adapter file', 'materialised folder'], way);
    await session.phase('evaluation');
    await sleep(500);
    return [...found, ...damageAll(session, ['candidates', 'training result', 'router'], way)];
  },
});

const finished = (way: Way): Scenario => ({
  name: `damage: report of a finished campaign, ${way}`,
  file: 'small',
  from: 'end',
  allow: { madeAgain: true },
  act(session) {
    const found = damageAll(session, ['report.json', 'status.json'], way);
    session.start();
    return Promise.resolve(found);
  },
});

export const damages: Scenario[] = ways.flatMap((way) => [
  ...Object.entries(groups).map(([name, kinds]) => betweenRuns(name, kinds, way)),
  trainersFiles(way),
  whileRunning(way),
  finished(way),
]);

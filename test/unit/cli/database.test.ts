/** Temporal's database when it is damaged, or when its server is killed while it makes it. With the real server. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { type Home } from '../../../src/cli/project';
import { databaseIsMade, prepareDatabase, startTemporal, watchDatabase } from '../../../src/cli/run/temporal-server';
import type { SupervisedRun } from '../../../src/cli/run/supervisor';
import { waitUntil } from '../../../src/cli/run/processes';

import { atEnd, newHome, supervise } from '../../support/supervised';
import { restartPolicy } from '../../../src/cli/run/service';

jest.setTimeout(120_000);

function runIn(home: Home, options: { temporalAddress?: string } = {}) {
  const supervised = supervise(home, restartPolicy);
  const { supervisor, notes } = supervised;
  const output = { note: (_stage: string, text: string) => void notes.push(text), show: () => undefined };
  const end = new AbortController();
  const stop = async () => {
    end.abort();
    await supervisor.stop();
  };
  atEnd(stop);
  const ports = { temporalPort: 0, uiPort: 0 };
  const run: SupervisedRun = {
    ...supervised,
    output,
    signal: end.signal,
    options: { home: home.root, ...ports, ...options },
  };
  return { ...supervised, run, stop };
}

/** A home whose server has run. */
async function used(): Promise<Home> {
  const home = newHome();
  const { run, stop } = runIn(home);
  await (await startTemporal(run)).temporal.close();
  await stop();
  return home;
}

/** Overwrites half of every page but the first two, also where the write-ahead log would hide it. */
function flipPages(home: Home): void {
  const log = `${home.temporalDatabase}-wal`;
  for (const file of [home.temporalDatabase, ...(existsSync(log) ? [log] : [])]) {
    const descriptor = openSync(file, 'r+');
    for (let at = 8192; at < statSync(file).size; at += 4096)
      writeSync(descriptor, Buffer.alloc(2048, 0xa5), 0, 2048, at);
    closeSync(descriptor);
  }
}

it.each([
  ['is none', (file: string) => writeFileSync(file, 'no database at all. '.repeat(300))],
  ['was cut off', (file: string) => truncateSync(file, 0)],
])('a database file that %s is refused with the remedy, which brings the server up', async (_how, damage) => {
  const home = await used();
  for (const name of readdirSync(home.root).filter((one) => /-(wal|shm)$/.test(one))) rmSync(join(home.root, name));
  damage(home.temporalDatabase);
  const error: Error = await startTemporal(runIn(home).run).then(
    () => Promise.reject(new Error('it started')),
    (thrown: Error) => thrown,
  );
  const before = readFileSync(home.temporalDatabase);
  execFileSync('sh', ['-c', /`(mv [^`]*)`/.exec(error.message)![1]!]);
  await (await startTemporal(runIn(home).run)).temporal.close();
  expect(readFileSync(`${home.temporalDatabase}.damaged`)).toEqual(before);
});

it('damaged pages end the run with the remedy, also if the server starts with them', async () => {
  const home = await used();
  const log = join(home.logs, 'temporal.log');
  appendFileSync(log, 'error="of an earlier run: file is not a database (26)"\n');
  const damages: string[] = [];
  const { signal } = new AbortController();
  jest.useFakeTimers();
  watchDatabase({ home, start: statSync(log).size, signal, onDamage: ({ message }) => damages.push(message) });
  jest.runOnlyPendingTimers();
  expect(damages).toEqual([]);
  appendFileSync(log, 'level=ERROR error="GetWorkflowExecution: database disk image is malformed (11)"\n');
  for (let look = 0; look < 2; look++) jest.runOnlyPendingTimers();
  jest.useRealTimers();
  expect(damages).toEqual([expect.stringContaining(`mv ${home.temporalDatabase}`)]);

  flipPages(home);
  const { run } = runIn(home);
  const ended = Promise.race([startTemporal(run).then(() => run.supervisor.failure), run.supervisor.failure]);
  await expect(ended).rejects.toThrow(`mv ${home.temporalDatabase}`);
});

it('a server that is killed while it makes its database makes it anew', async () => {
  const home = newHome();
  const { run, restarts, pid } = runIn(home);
  const starting = startTemporal(run);
  // Its tables are made in the first tenths of a second.
  expect(await waitUntil(() => existsSync(home.temporalDatabase), 20)).toBe(true);
  process.kill(pid() ?? 0, 'SIGKILL');
  await (await starting).temporal.close();
  expect(restarts).toHaveLength(1);
});

it('a database is thrown away only where its first start was cut short', () => {
  const home = newHome();
  prepareDatabase(home);
  writeFileSync(home.temporalDatabase, 'half of the tables');
  writeFileSync(`${home.temporalDatabase}-wal`, 'half');
  prepareDatabase(home);
  expect(readdirSync(home.root)).toEqual(['temporal.db.new']);
  writeFileSync(home.temporalDatabase, 'all tables');
  databaseIsMade(home);
  prepareDatabase(home);
  expect(readFileSync(home.temporalDatabase, 'utf8')).toBe('all tables');
});

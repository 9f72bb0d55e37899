/** Temporal's database when it is damaged, or when its server is killed while it makes it. With the real server. */
import { execFileSync } from 'node:child_process';
import { closeSync, existsSync, openSync, readdirSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type Home } from '../../../src/cli/project';
import { startTemporal } from '../../../src/cli/services/temporal-server';
import type { SupervisedRun } from '../../../src/cli/services/supervisor';
import { waitUntil } from '../../../src/cli/services/processes';

import { atEnd, newHome, supervise } from '../../support/supervised';
import { restartPolicy } from '../../../src/cli/services/service';

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
  const run: SupervisedRun = {
    ...supervised,
    output,
    signal: end.signal,
    options: { home: home.root, uiPort: 0, ...options },
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

it('a database file that is none is refused with the remedy, which brings the server up', async () => {
  const home = await used();
  for (const name of readdirSync(home.root).filter((one) => /-(wal|shm)$/.test(one))) rmSync(join(home.root, name));
  writeFileSync(home.temporalDatabase, 'no database at all. '.repeat(300));
  const error: Error = await startTemporal(runIn(home).run).then(
    () => Promise.reject(new Error('it started')),
    (thrown: Error) => thrown,
  );
  execFileSync('sh', ['-c', /`(mv [^`]*)`/.exec(error.message)![1]!]);
  await (await startTemporal(runIn(home).run)).temporal.close();
});

it('damaged pages end the run with the remedy, also if the server starts with them', async () => {
  const home = await used();
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

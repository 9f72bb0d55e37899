/** Temporal's database is damaged between two runs: the command says how to move it away, after which the campaign ends. */
import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from '../../support/campaign-run';
import type { Scenario } from '../../support/faults-scenario';
import type { Random } from '../../support/faults-random';

const PAGE = 4096;

/** Writes what SQLite's log holds into the database itself, so that no log hides the damage. */
function foldLog(database: string): void {
  const script = `import sqlite3, sys
sqlite3.connect(sys.argv[1]).execute("PRAGMA wal_checkpoint(TRUNCATE)")`;
  execFileSync(join(repository, '.venv/bin/python'), ['-c', script, database]);
  for (const suffix of ['-wal', '-shm']) rmSync(database + suffix, { force: true });
}

const damages: Record<string, (database: string, random: Random) => void> = {
  garbage: (database, random) =>
    writeFileSync(database, Buffer.from(Array.from({ length: statSync(database).size }, () => random.next() * 256))),
  'cut in half': (database) => truncateSync(database, PAGE * Math.floor(statSync(database).size / PAGE / 2)),
  'flipped pages': (database, random) => {
    const bytes = readFileSync(database);
    const file = openSync(database, 'r+');
    for (let page = 1; page < bytes.length / PAGE; page++) {
      if (random.next() < 0.5) continue;
      const flipped = bytes.subarray(page * PAGE, (page + 1) * PAGE).map((byte) => ~byte);
      writeSync(file, flipped, 0, flipped.length, page * PAGE);
    }
    closeSync(file);
  },
};

export const databases: Scenario[] = Object.entries(damages).map(([what, damage]) => ({
  name: `database: ${what}`,
  file: 'small',
  from: 'rollouts',
  async act(session) {
    foldLog(session.home.temporalDatabase);
    damage(session.home.temporalDatabase, session.random);
    const run = session.start();
    const code = await run.exit;
    for (const suffix of ['', '-wal', '-shm', '-journal'])
      rmSync(session.home.temporalDatabase + suffix, { force: true });
    session.start();
    if (code === 0) return ['the same command took a damaged database for whole'];
    return run.output.includes('temporal.db') ? [] : [`the error does not name the database:\n${run.output}`];
  },
}));

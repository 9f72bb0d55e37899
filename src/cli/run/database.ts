/**
 * The database of a home's Temporal server. Invariants: one whose first start was cut short holds nothing and is made anew; one that is
 * damaged is never deleted but moved aside, because somebody asked for it.
 */
import { existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../errors';
import type { Home } from '../project';
import { logTail } from './log-file';

/** Temporal's option that names the file. */
export const databaseOption = '--db-filename';

const LOOK_MS = 2000;
const LOOK_LINES = 200;
/** SQLite's files beside the database itself: the log of writes, its index, the journal of a first start. */
const suffixes = ['', '-wal', '-shm', '-journal'];
/** What SQLite says of a file of something else, of a flipped page, of missing pages, of an empty file. */
const damage =
  /file is not a database|database disk image is malformed|malformed database schema|no such (?:table|column): \w+|disk I\/O error[^"]*\(522\)/;

/** There while the server makes its tables: killed before their end, it could never start with them again. */
const marker = ({ temporalDatabase }: Home): string => `${temporalDatabase}.new`;

/** To be called before every start of the server. */
export function prepareDatabase(home: Home): void {
  if (existsSync(marker(home))) for (const suffix of suffixes) rmSync(home.temporalDatabase + suffix, { force: true });
  if (existsSync(home.temporalDatabase)) return;
  mkdirSync(home.root, { recursive: true });
  writeFileSync(marker(home), '');
}

/** To be called when the server answers: its tables are there. */
export const databaseIsMade = (home: Home): void => rmSync(marker(home), { force: true });

/** What a server's log says of damage; undefined if it says nothing of it. */
export function damageIn(lines: readonly string[]): string | undefined {
  for (const line of lines) {
    const found = damage.exec(line);
    if (found) return found[0];
  }
  return undefined;
}

export const damagedDatabase = ({ temporalDatabase, root }: Home, what: string, evidence: readonly string[] = []) =>
  new UserError(
    `Temporal's database ${temporalDatabase} is damaged (${what}); the same command with --recover moves it aside to ${temporalDatabase}.damaged-<time> and starts with a new one: what is finished is found again in ${join(root, 'artifacts')}, only the history in Temporal's UI begins anew`,
    evidence,
  );

/** Moves the database aside. @returns its new path; undefined if there was none. */
export function moveAside({ temporalDatabase }: Home, now = new Date()): string | undefined {
  const aside = `${temporalDatabase}.damaged-${now.toISOString().replace(/[-:]|\.\d+/g, '')}`;
  const there = suffixes.filter((suffix) => existsSync(temporalDatabase + suffix));
  for (const suffix of there) renameSync(temporalDatabase + suffix, aside + suffix);
  return there.length > 0 ? aside : undefined;
}

/**
 * Looks at the server's log until `signal`: with a damaged page it starts and runs, but whoever needs that page waits without end.
 * `onDamage` is called once.
 */
export function watchDatabase({
  home,
  log,
  signal,
  onDamage,
}: {
  home: Home;
  log: { path: string; start: number };
  signal: AbortSignal;
  onDamage: (error: UserError) => void;
}): void {
  const look = () => {
    // A log that has been rotated begins again.
    const size = statSync(log.path, { throwIfNoEntry: false })?.size ?? 0;
    const what = damageIn(logTail({ ...log, start: size < log.start ? 0 : log.start, lines: LOOK_LINES }));
    if (what === undefined) return;
    clearInterval(timer);
    onDamage(damagedDatabase(home, what, logTail({ path: log.path, lines: 3 })));
  };
  const timer = setInterval(look, LOOK_MS).unref();
  signal.addEventListener('abort', () => clearInterval(timer));
}

/** A folder as it is when nothing was written to it for two days. */
import { utimesSync } from 'node:fs';
import { walk } from '../../src/store/backend';

const TWO_DAYS_S = 2 * 24 * 3600;

export async function age(folder: string): Promise<void> {
  const then = Date.now() / 1000 - TWO_DAYS_S;
  for (const { path } of await walk(folder)) utimesSync(path, then, then);
}

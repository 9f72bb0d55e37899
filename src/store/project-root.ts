import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The project's folder, from `src/` and from `dist/` alike. It has a file of its own so that the command line starts without the schemas of domain. */
export const projectRoot = resolve(__dirname, '..', '..');

export const version: string = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')).version;

/** Returns the commit of a checkout, with `-dirty` if files differ from it. Undefined elsewhere, and without git. */
export function commitNow(): string | undefined {
  if (!existsSync(join(projectRoot, '.git'))) return undefined;
  const args = ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*'];
  try {
    return execFileSync('git', args, { cwd: projectRoot, encoding: 'utf8', stdio: 'pipe', timeout: 10_000 }).trim();
  } catch {
    return undefined;
  }
}

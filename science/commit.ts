/** The commit of the code that runs, with a mark where files were changed since, other than the pages that the studies write. */
import { execFileSync } from 'node:child_process';
import { repository } from './settings';

let known: string | undefined;

export function commit(): string {
  const git = (...args: string[]) => execFileSync('git', args, { cwd: repository, encoding: 'utf8' }).trim();
  known ??= `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', '--', ':!docs/results') === '' ? '' : ' and changes'}`;
  return known;
}

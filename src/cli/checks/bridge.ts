/** What a target's kind needs beside the project: a Python environment of its own, and folders that the campaign file names. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Campaign } from '../../domain/campaign';
import { kindOf } from '../../domain/kinds';
import { environments } from '../../environments';
import { projectRoot } from '../project';
import { failed, passed, type Check } from './check';

/** One check per thing; none for a target that needs nothing. `named`: where the folders are named, if not in a campaign file. */
export function checkBridge(
  { target }: Pick<Campaign, 'target'>,
  {
    root = projectRoot,
    kinds = environments,
    named,
  }: { root?: string; kinds?: typeof environments; named?: string } = {},
): Check[] {
  const { python, folders = [] } = kindOf(kinds, target);
  return [
    ...(python ? [installed({ root, ...python })] : []),
    ...folders.flatMap(({ option, name, holds }) => {
      const path = target[option];
      return typeof path === 'string' ? [folder({ name, field: named ?? `target.${option}`, path, holds })] : [];
    }),
  ];
}

function installed({ root, environment, command }: { root: string; environment: string; command: string }): Check {
  // The stamp is made last: a broken installation has none.
  return existsSync(join(root, environment, '.installed'))
    ? passed('bridge', environment)
    : failed('bridge', `${environment} is not installed`, `run \`${command}\``);
}

function folder({ name, field, path, holds }: { name: string; field: string; path: string; holds: string }): Check {
  if (existsSync(join(path, holds))) return passed(name, path);
  const missing = existsSync(path) ? `${path} holds no ${holds}` : `there is no folder ${path}`;
  return failed(name, missing, `name a checkout in ${field}`);
}

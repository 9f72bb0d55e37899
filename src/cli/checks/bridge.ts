/** What the bridges of the benchmarks need: their Python environments and the folders that a campaign file names. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Campaign } from '../../domain/campaign';
import { projectRoot } from '../project';
import { failed, passed, type Check } from './check';

/** One check per thing; none for a target without a bridge of ours. */
export function checkBridge({ target }: Campaign, root = projectRoot): Check[] {
  switch (target.kind) {
    case 'tau2': {
      const { checkout } = target;
      return [
        installed({ root, environment: '.venv-bridges', command: 'make bridges' }),
        ...(checkout === undefined
          ? []
          : [folder({ name: 'tau2-bench checkout', field: 'target.checkout', path: checkout, holds: 'src/tau2' })]),
      ];
    }
    case 'toolsandbox':
      return [
        installed({ root, environment: '.venv-toolsandbox', command: 'make bridges-toolsandbox' }),
        folder({ name: 'ToolSandbox', field: 'target.folder', path: target.folder, holds: 'tool_sandbox' }),
      ];
    default:
      return [];
  }
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
  return failed(name, missing, `name a checkout in ${field} of the campaign file`);
}

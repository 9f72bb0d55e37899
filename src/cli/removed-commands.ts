/** Commands of 0.2 that are refused, each with its replacement. The table is dropped in 0.5. */
import type { Command } from 'commander';

export const removed: Readonly<Record<string, string>> = {
  'codec-server':
    "Temporal holds references, no texts; use a payload codec and its server of Temporal's samples for more",
  doctor: 'use `campaign check`, or `campaign check FILE`',
  plan: 'use `campaign check FILE`',
  env: 'use `campaign check FILE`, `campaign check MODULE.js` or `campaign check -- PROGRAM`',
  metrics: 'set training.reportTo to tensorboard or wandb (docs/report.md)',
  select: '`campaign analyse` selects from conversations, a campaign from its rollouts',
  labels: 'compare `reading.failures` of an analysis.json with labels by people in a program such as scikit-learn',
  du: 'use `campaign gc --dry-run`, which counts what would go',
  prune: 'use `campaign gc`',
  pause: 'cancel NAME, then run FILE again',
  resume: 'run FILE again',
  restart: 'use `campaign run FILE --restart`',
  start: 'use `campaign run FILE --detach`',
  retry: 'use `campaign run FILE --retry`, on a cluster with --detach',
  watch: 'use `campaign status NAME --watch`',
  approvals: 'use `campaign status NAME`',
  compare: 'use `campaign report NAME...`',
  lineage: 'use `campaign show ID`',
  gateway: 'use `campaign serve NAME`',
};

/** Adds what was removed to a program. Help does not show it. */
export function refuseRemoved(program: Command): void {
  for (const [name, why] of Object.entries(removed)) {
    const command = program.command(`${name} [arguments...]`, { hidden: true }).allowUnknownOption();
    command.action(() =>
      command.error(`error: ${name}: removed in 0.3: ${why}`, { exitCode: 2, code: 'removed_command' }),
    );
  }
}

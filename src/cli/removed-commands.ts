/** Commands and options of 0.2 that are refused, each with its replacement. The table is dropped in 0.5. */
import { type Command, Option } from 'commander';

interface RemovedCommand {
  command: string;
  /** The only refused option of the command. Without it the command is refused. */
  option?: string;
  version: '0.3';
  /** The replacement or the reason; follows the name in the error. */
  why: string;
}

export const removed: readonly RemovedCommand[] = [
  {
    command: 'codec-server',
    version: '0.3',
    why: "Temporal holds references, no texts; use a payload codec and its server of Temporal's samples for more",
  },
  { command: 'doctor', version: '0.3', why: 'use `campaign check`, or `campaign check FILE`' },
  { command: 'plan', version: '0.3', why: 'use `campaign check FILE`' },
  {
    command: 'env',
    version: '0.3',
    why: 'use `campaign check FILE`, `campaign check MODULE.js` or `campaign check -- PROGRAM`',
  },
  { command: 'metrics', version: '0.3', why: 'set training.reportTo to tensorboard or wandb (docs/report.md)' },
  { command: 'schema', option: '--markdown', version: '0.3', why: 'read docs/campaign-file.md' },
  { command: 'export', option: '--conversations', version: '0.3', why: 'use --rollouts, which writes JSON lines' },
  {
    command: 'select',
    version: '0.3',
    why: 'a campaign with `analyst: { kind: given }` selects from label files (docs/analysis.md)',
  },
  {
    command: 'labels',
    version: '0.3',
    why: 'compare labels/run_NN.json of an analysis with labels by people in a program of yours, such as scikit-learn',
  },
  { command: 'du', version: '0.3', why: 'use `campaign gc --dry-run`, which counts what would go' },
  { command: 'prune', version: '0.3', why: 'use `campaign gc`' },
  { command: 'pause', version: '0.3', why: 'cancel NAME, then run FILE again' },
  { command: 'resume', version: '0.3', why: 'run FILE again' },
  { command: 'restart', version: '0.3', why: 'use `campaign run FILE --restart`' },
  { command: 'start', version: '0.3', why: 'use `campaign run FILE --detach`' },
  { command: 'retry', version: '0.3', why: 'use `campaign run FILE --retry [CHILD]`, on a cluster with --detach' },
  { command: 'watch', version: '0.3', why: 'use `campaign status NAME --watch`' },
  { command: 'approvals', version: '0.3', why: 'use `campaign status NAME`' },
  { command: 'compare', version: '0.3', why: 'use `campaign report NAME...`' },
  { command: 'lineage', version: '0.3', why: 'use `campaign show ID`' },
  { command: 'gateway', version: '0.3', why: 'use `campaign serve NAME`' },
  { command: 'run', option: '--training-seeds', version: '0.3', why: 'use --training-seed 1,2,3' },
  {
    command: 'run',
    option: '--exit',
    version: '0.3',
    why: '`run` ends with its campaign; `campaign ui` starts the UI',
  },
  {
    command: 'run',
    option: '--recover',
    version: '0.3',
    why: 'the error names the command that moves a damaged database',
  },
  {
    command: 'serve',
    option: '--ui-port',
    version: '0.3',
    why: "use `campaign ui` for Temporal's UI; `serve` serves a model",
  },
  { command: 'serve', option: '--max-body', version: '0.3', why: 'a request has at most 8 MiB' },
  { command: 'serve', option: '--timeout', version: '0.3', why: 'an answer has at most 300 s' },
  { command: 'serve', option: '--grace', version: '0.3', why: 'answers have 30 s after the end began' },
  { command: 'analyse', option: '--price-input', version: '0.3', why: 'use --price INPUT,OUTPUT' },
  { command: 'analyse', option: '--price-output', version: '0.3', why: 'use --price INPUT,OUTPUT' },
  { command: 'analyse', option: '--prompts', version: '0.3', why: 'use `prompts` in the file of --config' },
];

const REFUSED = { exitCode: 2, code: 'removed_command' };

/** Adds what was removed to a program that has its commands. Help does not show it. */
export function refuseRemoved(program: Command): void {
  for (const { command: name, option, version, why } of removed) {
    const text = `error: ${[name, option].filter(Boolean).join(' ')}: removed in ${version}: ${why}`;
    if (option === undefined) {
      const command = program.command(`${name} [arguments...]`, { hidden: true });
      command.allowUnknownOption().action(() => command.error(text, REFUSED));
      continue;
    }
    const command = program.commands.find((one) => one.name() === name);
    const refused = new Option(`${option} [values...]`).hideHelp();
    command?.addOption(refused).on(`option:${refused.name()}`, () => command.error(text, REFUSED));
  }
}

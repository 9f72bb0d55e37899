/** `campaign labels import` and `compare`: people's labels against a model's. */
import type { Command } from 'commander';
import type { LabelsOptions } from '../analyse/labels';
import { allOptions } from '../options';

// eslint-disable-next-line @typescript-eslint/no-require-imports -- slow to load, and it loads modules that use `lazy`
const labelsModule = () => require('../analyse/labels') as typeof import('../analyse/labels');

const NAME = 'analysis or campaign (default: the newest analysis)';

export function labelsCommands(program: Command): void {
  const labels = program.command('labels').description('labels by people, against those of the labeling passes');
  labels
    .command('import <file>')
    .description(
      'check labels by people, or marks of where failures begin (JSON lines or CSV), and keep them for compare and the page',
    )
    .option('--name <name>', NAME)
    .action(async (file: string, _options: unknown, command: Command) => {
      console.log(await labelsModule().importLabels(file, allOptions<LabelsOptions>(command)));
    });
  labels
    .command('compare [file]')
    .description(
      'agreement and confusion by capability, and where failures begin (default: the labels that were imported)',
    )
    .option('--name <name>', NAME)
    .option('--json', 'print JSON')
    .action(async (file: string | undefined, _options: unknown, command: Command) => {
      console.log(await labelsModule().compareLabels(file, allOptions<LabelsOptions>(command)));
    });
}

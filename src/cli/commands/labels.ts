/** `campaign labels import` and `compare`: people's labels against a model's. */
import type { Command } from 'commander';
import type { LabelsOptions } from '../analyse/labels';
import { allOptions, examples } from '../options';

const NAME = 'analysis or campaign (default: the newest analysis)';

export function labelsCommands(program: Command): void {
  const labels = program.command('labels').description("compare people's labels with those of the labeling passes");
  labels
    .command('import <file>')
    .description(
      'check labels by people, or marks of where failures begin (JSON lines or CSV), and keep them for compare and the page',
    )
    .option('--name <name>', NAME)
    .addHelpText('after', examples(['campaign labels import labels.csv --name support']))
    .action(async (file: string, _options: unknown, command: Command) => {
      const { importLabels } = await import('../analyse/labels.js');
      console.log(await importLabels(file, allOptions<LabelsOptions>(command)));
    });
  labels
    .command('compare [file]')
    .description(
      'agreement and confusion by capability, and where failures begin (default: the labels that were imported)',
    )
    .option('--name <name>', NAME)
    .option('--json', 'print JSON')
    .addHelpText('after', examples(['campaign labels compare --name support']))
    .action(async (file: string | undefined, _options: unknown, command: Command) => {
      const { compareLabels } = await import('../analyse/labels.js');
      console.log(await compareLabels(file, allOptions<LabelsOptions>(command)));
    });
}

/** `campaign analyse`: which capabilities are lacking in conversations that there are already. */
import { InvalidArgumentError, type Command } from 'commander';
import type { AnalyseOptions } from '../analyse/run';
import { allOptions, wholeNumber } from '../options';

// eslint-disable-next-line @typescript-eslint/no-require-imports -- slow to load, and it loads modules that use `lazy`
const analyseModule = () => require('../analyse/run') as typeof import('../analyse/run');

export function analyseCommand(program: Command): void {
  program
    .command('analyse <files...>')
    .alias('analyze')
    .description('which capabilities an agent lacks, from conversations that it had: JSON lines, or logs of Inspect')
    .option('--url <url>', 'OpenAI-compatible endpoint of the language model that reads them, ending in /v1')
    .option('--model <name>', 'its model')
    .option('--api-key-env <name>', 'environment variable with the API key')
    .option('--config <file>', "YAML file with the analyst's fields, or a campaign file")
    .option('--passes <n>', 'labeling passes (default: 10)', wholeNumber(1, 1000))
    .option('--votes <n>', 'passes that must agree to select a capability (default: 8 of 10)', wholeNumber(1, 1000))
    .option('--price-input <dollars>', 'for a million tokens of prompts', dollars)
    .option('--price-output <dollars>', 'for a million tokens of replies', dollars)
    .option('--max-dollars <dollars>', 'stop before more than this is spent', budget)
    .option('--prompts <folder>', 'prompts of your own, each in place of the one of its name in prompts/')
    .option('--scorer <name>', "whose score counts in Inspect's logs with several")
    .option('--name <name>', "folder of the result in the home (default: the first file's name)")
    .option('--yes', 'go on without asking')
    .option('--json', 'print analysis.json instead of a table')
    .action(async (files: string[], _options: unknown, command: Command) => {
      process.exitCode = await analyseModule().analyse(files, allOptions<AnalyseOptions>(command));
    });
}

function dollars(text: string): number {
  const number = Number(text);
  if (text.trim() === '' || !(number >= 0) || !Number.isFinite(number))
    throw new InvalidArgumentError('It must be an amount of dollars, such as 2.5.');
  return number;
}

function budget(text: string): number {
  const most = dollars(text);
  if (most === 0) throw new InvalidArgumentError('It must be more than 0 dollars.');
  return most;
}

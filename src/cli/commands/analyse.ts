/** `campaign analyse`: which capabilities are lacking in conversations that there are already. */
import { InvalidArgumentError, type Command } from 'commander';
import type { AnalyseOptions } from '../analyse/run';
import { allOptions, examples, wholeNumber } from '../options';

export function analyseCommand(program: Command): void {
  program
    .command('analyse <files...>')
    .alias('analyze')
    .description('find the capabilities that an agent lacks in its conversations: JSON lines, or logs of Inspect')
    .option('--url <url>', 'OpenAI-compatible endpoint of the language model that reads them, ending in /v1')
    .option('--model <name>', 'its model')
    .option('--api-key-env <name>', 'environment variable with the API key')
    .option('--config <file>', "YAML file with the analyst's fields, or a campaign file")
    .option('--passes <n>', 'labeling passes (default: 10)', wholeNumber(1, 1000))
    .option('--votes <n>', 'passes that must agree to select a capability (default: 8 of 10)', wholeNumber(1, 1000))
    .option('--price-input <dollars>', 'price in dollars per million prompt tokens', dollars)
    .option('--price-output <dollars>', 'price in dollars per million reply tokens', dollars)
    .option('--max-dollars <dollars>', 'stop before more than this is spent', budget)
    .option('--prompts <folder>', 'prompts of your own, each in place of the one of its name in prompts/')
    .option('--scorer <name>', "whose score counts in Inspect's logs with several")
    .option('--name <name>', "folder of the result in the home (default: the first file's name)")
    .option('--yes', 'go on without asking')
    .option('--json', 'print analysis.json instead of a table')
    .addHelpText(
      'after',
      examples([
        'campaign analyse conversations.jsonl --url http://127.0.0.1:8000/v1 --model my-model --max-dollars 5',
      ]),
    )
    .action(async (files: string[], _options: unknown, command: Command) => {
      const { analyse } = await import('../analyse/run.js');
      process.exitCode = await analyse(files, allOptions<AnalyseOptions>(command));
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

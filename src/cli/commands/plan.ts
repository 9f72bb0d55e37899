/** `campaign plan`: what a campaign will make and spend, before anything is spent. */
import type { Command } from 'commander';
import { publishedRun } from '../../domain/presets';
import { allOptions, examples, wholeNumber } from '../options';
import type { PlanOptions } from '../plan/plan';

export function planCommand(program: Command): void {
  program
    .command('plan <file>')
    .description(
      'estimate rollouts, tokens, GPU-hours and wall time of a campaign, from measured rates where there are any',
    )
    .option(
      '--capabilities <n>',
      `capabilities that are selected (default: what the analyst is given outright, else ${publishedRun.capabilities}, as published)`,
      wholeNumber(0, 100),
    )
    .option('--rates <file>', 'rates for what no report of this home has measured (docs/plan.md)')
    .option('--json', 'print JSON')
    .addHelpText('after', examples(['campaign plan campaigns/mine.yaml --capabilities 6']))
    .action(async (path: string, _options: unknown, command: Command) => {
      const { plan } = await import('../plan/plan.js');
      process.exitCode = await plan(path, allOptions<PlanOptions>(command));
    });
}

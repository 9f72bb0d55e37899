/** `campaign start`: starts a campaign on a cluster that is up already. It decides about a known name as `campaign run` does. */
import type { Command } from 'commander';
import { allOptions, campaignOptions, examples, homeOf, type CommonOptions } from '../options';
import type { Home } from '../project';
import type { Decision, StartOptions } from '../run/campaign';
import type { TemporalAddress } from '../temporal';

const decisions: Record<Decision, string> = {
  start: 'started',
  attach: 'is running already',
  show: 'has ended already',
};

export function startCommand(program: Command): void {
  campaignOptions(program.command('start <file>'))
    .description('start a campaign on a running cluster and leave; workers take it up wherever they are')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      examples(['campaign --temporal-address temporal:7233 start campaigns/mine.yaml', 'on a cluster of your own']),
    )
    .action(async (file: string, _options: unknown, command: Command) => {
      const options = allOptions<StartOptions & CommonOptions>(command);
      const { addressOf } = await import('../temporal.js');
      const started = await startFile({ file, at: addressOf(options), home: homeOf(options), options });
      const { campaign, decision, waitsFor } = started;
      const status = decisions[decision];
      if (options.json) return console.log(JSON.stringify({ campaign, status, waitsFor }));
      console.log(`campaign ${campaign} ${status}; \`campaign watch ${campaign}\` follows it`);
      if (waitsFor) console.log(`none of the ${waitsFor} runs now: it waits until one is started`);
    });
}

export async function startFile(o: {
  file: string;
  at: TemporalAddress;
  home: Home;
  options: StartOptions;
}): Promise<{ campaign: string; decision: Decision; waitsFor?: string | undefined }> {
  const { at, home } = o;
  const { until, force } = o.options;
  const { taskQueues } = await import('../../domain/work.js');
  const { decide, readStart } = await import('../run/campaign.js');
  const { campaignState, connect, hasWorkers, registerSearchAttributes, startCampaign } =
    await import('../temporal.js');
  const read = await readStart(o);
  const { name } = read.campaign;
  const start = { ...read, store: await read.store(), until, force };
  const temporal = await connect(at);
  try {
    await registerSearchAttributes(temporal, at);
    const decision = decide(await campaignState(temporal, name), { ...start, name });
    if (decision === 'start') await startCampaign(temporal, start);
    const queue = taskQueues.control(start.store);
    const isWaiting = decision !== 'show' && !(await hasWorkers(temporal, queue));
    return {
      campaign: name,
      decision,
      waitsFor: isWaiting ? `control workers of ${home.root} (${queue})` : undefined,
    };
  } finally {
    await temporal.close();
  }
}

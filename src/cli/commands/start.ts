/** `campaign start`: starts a campaign on a cluster that is up already. It decides about a known name as `campaign run` does. */
import type { Command } from 'commander';
import { join } from 'node:path';
import type { Stage } from '../../domain/campaign';
import type { CampaignOverrides } from '../campaign-file';
import { allOptions, campaignOptions, examples, homeOf, type CommonOptions } from '../options';
import type { Home } from '../project';
import type { Decision } from '../run/campaign';
import type { TemporalAddress } from '../temporal';

interface StartOptions extends CampaignOverrides {
  until?: Stage;
  force?: boolean;
}

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
  const { file, at, home, options } = o;
  const { until, force } = options;
  const { openFolderStore } = await import('../../artifacts/folder-store.js');
  const { taskQueues } = await import('../../domain/work.js');
  const { refuseNameOfAnalysis } = await import('../analyse/folder.js');
  const { configDigests, loadCampaign, termsDigest } = await import('../campaign-file.js');
  const { decide } = await import('../run/campaign.js');
  const { campaignState, connect, hasWorkers, registerSearchAttributes, startCampaign } =
    await import('../temporal.js');
  const campaign = loadCampaign({ file, overrides: options });
  const { name } = campaign;
  refuseNameOfAnalysis({ home, name });
  const digests = { configDigests: await configDigests({ campaign, file, until }), terms: termsDigest(campaign) };
  const store = await openFolderStore(join(home.root, 'artifacts')).id();
  const temporal = await connect(at);
  try {
    await registerSearchAttributes(temporal, at);
    const state = await campaignState(temporal, name);
    const decision = decide({ name, store, state, ...digests, until });
    if (decision === 'start') await startCampaign(temporal, { campaign, store, ...digests, until, force });
    const queue = taskQueues.control(store);
    const isWaiting = decision !== 'show' && !(await hasWorkers(temporal, queue));
    const waitsFor = isWaiting ? `control workers of ${home.root} (${queue})` : undefined;
    return { campaign: name, decision, waitsFor };
  } finally {
    await temporal.close();
  }
}

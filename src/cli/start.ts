/** Starts a campaign on a cluster that is up already. Invariant: the same decision as `campaign run` about a name that is known. */
import { join } from 'node:path';
import { openFolderStore } from '../artifacts/folder-store';
import type { Stage } from '../domain/campaign';
import { taskQueues } from '../domain/work';
import { refuseNameOfAnalysis } from './analyse/places';
import { configDigest, loadCampaign, termsDigest, type CampaignOverrides } from './campaign-file';
import type { Home } from './project';
import { decide, type Decision } from './run/decide';
import {
  campaignState,
  connect,
  hasWorkers,
  registerSearchAttributes,
  startCampaign,
  type TemporalAddress,
} from './temporal';

export interface StartOptions extends CampaignOverrides {
  until?: Stage;
  force?: boolean;
}

export async function startFile({
  file,
  at,
  home,
  options,
}: {
  file: string;
  at: TemporalAddress;
  home: Home;
  options: StartOptions;
}): Promise<{ campaign: string; decision: Decision; waitsFor?: string }> {
  const { name, seed, trainingSeed, until, force } = options;
  const campaign = loadCampaign({
    file,
    overrides: {
      ...(name === undefined ? {} : { name }),
      ...(seed === undefined ? {} : { seed }),
      ...(trainingSeed === undefined ? {} : { trainingSeed }),
    },
  });
  refuseNameOfAnalysis({ home, name: campaign.name });
  const digests = { configDigest: await configDigest({ campaign, file, until }), terms: termsDigest(campaign) };
  const store = await openFolderStore(join(home.root, 'artifacts')).id();
  const temporal = await connect(at);
  try {
    await registerSearchAttributes(temporal, at);
    const state = await campaignState(temporal, campaign.name);
    const decision = decide({ name: campaign.name, store, state, ...digests, until });
    if (decision === 'start') await startCampaign(temporal, { campaign, store, ...digests, until, force });
    const queue = taskQueues.control(store);
    const waits = decision !== 'show' && !(await hasWorkers(temporal, queue));
    return {
      campaign: campaign.name,
      decision,
      ...(waits && { waitsFor: `control workers of ${home.root} (${queue})` }),
    };
  } finally {
    await temporal.close();
  }
}

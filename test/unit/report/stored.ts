/** What a campaign leaves in a store, for tests of what a report makes of it. */
import { digest } from '../../../src/store/hash';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { campaignSchema } from '../../../src/domain/campaign';
import { outcomesSchema, summarise } from '../../../src/domain/outcomes';
import type { CampaignRecord } from '../../../src/domain/results';
import type { Purpose, Rollout, RolloutSummary } from '../../../src/domain/rollout';
import { putRollouts } from '../../support/scored-rollout';
import { temporaryFolder } from '../../support/temporary-folder';
import { shopCampaign } from '../../support/kinds';

/** A store of a test file's own, and what puts something into it. */
export function campaignStore(root = temporaryFolder()) {
  const store = openFolderStore(root);
  const put = (body: string, mediaType = 'application/json'): Promise<ArtifactRef> =>
    store.put({ key: digest(body), producer: 'test', inputs: [], mediaType, body });
  const json = (value: unknown) => put(JSON.stringify(value));
  const keepRollouts = (title: string, rollouts: readonly Rollout[], inputs: ArtifactRef[] = []) =>
    putRollouts(store, title, rollouts, { inputs });
  /** A batch as a campaign has it. */
  async function batch(purpose: Purpose, title: string, rollouts: readonly Rollout[]): Promise<RolloutSummary> {
    const ref = await keepRollouts(title, rollouts);
    return { ...summarise(outcomesSchema.parse(rollouts)), ref, purpose, title, seconds: 1 };
  }
  return { store, put, json, keepRollouts, batch };
}

/** A campaign that has its base rollouts, and nothing else yet. */
export const startedCampaign = (baseRollouts: RolloutSummary, campaign: object = {}): CampaignRecord => ({
  campaign: campaignSchema.parse({ ...shopCampaign, ...campaign }),
  ...{ workflowId: 'built', startedAt: 0, finishedAt: 1000, stageSeconds: { rollouts: 1 } },
  prepared: {
    ...{ base: 'base@1', pool: 'pool', target: { name: 'shop', version: '1' }, plan: baseRollouts.ref },
    tasks: { train: 7, validation: 5, router: 3, test: 4 },
  },
  baseRollouts,
});

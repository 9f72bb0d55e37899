/** What the record of a finished campaign says that its report does not: where its policies were served, and the policies of its baselines. */
import { z } from 'zod';
import type { ArtifactStore } from '../artifacts/store';
import { keysNotedBy } from '../artifacts/usage';
import type { Campaign } from '../domain/campaign';
import { fixedPolicySchema } from '../domain/rollout';
import type { FittedRouter } from '../routing/router';

export interface Recorded {
  policyServer?: Campaign['policyServer'];
  baselines: FittedRouter['options'];
}

const recordSchema = z.object({
  campaign: z.object({ name: z.string(), policyServer: z.custom<Campaign['policyServer']>() }),
  finishedAt: z.number(),
  arms: z.array(z.object({ name: z.string(), best: z.object({ policy: fixedPolicySchema }).optional() })).default([]),
});

/** Of the campaign's last record, as far as the store has noted what is of which campaign. */
export async function recordedOf(store: ArtifactStore, name: string): Promise<Recorded> {
  const results = (await keysNotedBy(store, name)).filter((key) => key.startsWith('result/'));
  const records = await Promise.all(
    results.map(async (key) => {
      const ref = await store.find(key);
      return ref ? (recordSchema.safeParse(JSON.parse(String(await store.read(ref)))).data ?? []) : [];
    }),
  );
  const own = records.flat().filter(({ campaign }) => campaign.name === name);
  const last = own.sort((a, b) => a.finishedAt - b.finishedAt).at(-1);
  if (!last) return { baselines: [] };
  const baselines = last.arms.flatMap((arm) => (arm.best ? [{ name: arm.name, policy: arm.best.policy }] : []));
  return { policyServer: last.campaign.policyServer, baselines };
}

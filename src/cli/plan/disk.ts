/** What a campaign's adapters will take on disk. Invariant: the base model's weights are not read. */
import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Campaign } from '../../domain/campaign';
import { loraModules } from '../../policy/base-model';
import { pythonPath } from '../project';
import type { CampaignPlan } from './estimate';

export interface DiskPlan {
  adapterBytes: number;
  /** Of all that are made. */
  bytes: number;
  /** Where the home is, or will be. */
  freeBytes: number;
}

/** Factors A and B, in float32. */
const BYTES = 4;
/** Each step's adapter is in the store, and laid out for the policy server. */
const COPIES = 2;
/** A checkpoint has the adapter and Adam's two moments of it. */
const CHECKPOINT = 3;

/** Undefined where the base model, or the Python that would look at it, is not there yet. */
export async function plannedDisk(o: {
  campaign: Campaign;
  plan: CampaignPlan;
  home: string;
}): Promise<DiskPlan | undefined> {
  const { baseModel, training } = o.campaign;
  const { r, targetModules } = training.lora;
  const asked = { python: pythonPath(), model: baseModel.path, targetModules };
  const found = existsSync(baseModel.path) ? await loraModules(asked).catch(() => undefined) : undefined;
  if (!found || found.modules.length === 0) return undefined;
  const adapterBytes = found.modules.reduce((sum, module) => sum + (module.in + module.out) * r * BYTES, 0);
  const rollouts = o.plan.purposes.find(({ purpose }) => purpose === 'training')?.rollouts.high ?? 0;
  const steps = rollouts / (training.groupsPerStep * training.groupSize);
  const bytes = adapterBytes * steps * (COPIES + CHECKPOINT / training.checkpointEvery);
  return { adapterBytes, bytes, freeBytes: freeAt(o.home) };
}

function freeAt(folder: string): number {
  if (!existsSync(folder) && folder !== dirname(folder)) return freeAt(dirname(folder));
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

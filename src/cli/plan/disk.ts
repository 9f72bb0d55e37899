/** What a campaign's adapters will take on disk. Invariant: headers of the base model are read, its weights are not. */
import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Campaign } from '../../domain/campaign';
import { weightShapes } from '../checks/base-model';
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

/** Undefined where the base model's folder does not tell the sizes of the modules that are trained. */
export function plannedDisk(o: { campaign: Campaign; plan: CampaignPlan; home: string }): DiskPlan | undefined {
  const { baseModel, training } = o.campaign;
  const { r, targetModules } = training.lora;
  const adapterBytes = weightShapes(baseModel.path)
    .filter(({ module }) => targetModules.some((target) => `.${module}`.endsWith(`.${target}`)))
    .reduce((sum, { shape: [rows = 0, columns = 0] }) => sum + (rows + columns) * r * BYTES, 0);
  if (adapterBytes === 0) return undefined;
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

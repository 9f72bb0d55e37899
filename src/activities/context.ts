/** The dependencies of activities. */
import type { ArtifactStore } from '../store/store';
import { isFailure, OutsideFailure } from '../domain/failures';
import { baseModelId, hashOf, modelOf } from '../policy/base-model';
import type { PolicyClient } from '../policy/client';
import type { Registry } from '../registry';
import type { Resolve } from '../rollout/resolve';
import type { GpuGroups } from '../training/learner-process';
import type { EnvironmentPool } from './environments';
import { working } from './heartbeat';

export interface Dependencies {
  store: ArtifactStore;
  environments: EnvironmentPool;
  kinds: Registry;
  home: string;
  python: string;
  /** The base model that the operator says the policy server serves (CAMPAIGN_BASE_ID). */
  baseId?: string | undefined;
  /** The base model's folder on this machine (CAMPAIGN_MODEL). */
  model?: string | undefined;
}

export type PolicyDependencies = Dependencies & { client: PolicyClient };
/** Dependencies of the activities that play batches. `resolve` keeps the routers that it has opened. */
export type RolloutDependencies = PolicyDependencies & { resolve: Resolve };
export type GpuDependencies = PolicyDependencies & { gpus: GpuGroups };

/** The folder of a base on this machine. Throws WrongBaseModel where there is another one, or none: another worker may have it. */
export async function modelFolder({ model, python, home }: Dependencies, base: string): Promise<string> {
  const { signal, progress: onProgress } = working('hash the base model');
  const wanted = modelOf(base);
  const asked = model ? baseModelId({ python, home, model, signal, onProgress }) : Promise.resolve('which is not set');
  const has = await asked.catch((error: unknown) => {
    if (isFailure(error, 'BadInput')) return error.message;
    throw error;
  });
  if (model && hashOf(has) === hashOf(wanted)) return model;
  const problem = `the campaign wants ${wanted}, and this worker has CAMPAIGN_MODEL=${model ?? ''}, ${has}`;
  throw new OutsideFailure('WrongBaseModel', `${problem}; start it with the folder of that model there`);
}

/** The dependencies of activities, and helpers that several of them need. */
import type { ArtifactStore } from '../store/store';
import type { PayingRole } from '../domain/endpoints';
import { isFailure, OutsideFailure } from '../domain/failures';
import type { Work } from '../domain/work';
import { openLedger, type LedgerOptions } from '../llm/ledger';
import type { Ledger } from '../llm/model';
import { count } from '../metrics';
import { baseModelId, hashOf, modelOf } from '../policy/base-model';
import type { PolicyClient } from '../policy/client';
import type { Registry } from '../registry';
import type { Resolve } from '../rollout/resolve';
import type { GpuGroups } from '../training/learner-process';
import type { EnvironmentPool } from './environments';
import { activitySignal, markProgress, progress } from './heartbeat';
import type { Payer } from './types';

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

/** Returns progress and signal of the activity, for a part that may take long. */
export const working = (title: string): Work => ({
  signal: activitySignal(),
  progress: (done, total) => progress({ kind: 'analysis', title, done, total }),
});

/** Opens the ledger of a step. Payments are counted in metrics, and a kept reply is durable progress. */
export function ledgerOf(o: LedgerOptions): Ledger {
  const onPaid = (dollars: number) => count('campaign_spent_microdollars', dollars * 1e6, { role: o.role });
  const ledger = openLedger({ ...o, onPaid });
  return {
    ...ledger,
    async keep(...reply) {
      await ledger.keep(...reply);
      markProgress();
    },
  };
}

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

/** Returns progress, signal and ledger for a part that calls a language model. */
export function asking(
  o: Payer & { store: ArtifactStore; title: string; role: PayingRole },
): Work & { ledger: Ledger } {
  const { store, campaign, budget, role, title } = o;
  const work = working(title);
  work.progress(0, 1);
  return { ...work, ledger: ledgerOf({ store, campaign, budget, role }) };
}

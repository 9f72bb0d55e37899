/** What every activity is given, and how it reports its progress. */
import { Context } from '@temporalio/activity';
import type { ArtifactStore } from '../artifacts/store';
import type { PayingRole } from '../domain/endpoints';
import type { AnalysisHeartbeat, Work } from '../domain/work';
import { openLedger } from '../language-model/ledger';
import type { Ledger } from '../language-model/types';
import type { PolicyClient } from '../policy/client';
import type { Merge } from '../policy/merge';
import type { Registry } from '../registry';
import type { GpuGroups } from '../training/gpu-groups';
import type { EnvironmentPool } from './environments';
import type { Payer } from './types';

export interface Dependencies {
  store: ArtifactStore;
  environments: EnvironmentPool;
  /** The kinds that campaigns may pick. */
  kinds: Registry;
  /** Folder of the campaigns on this machine: artifacts, trainer folders, reports. */
  home: string;
  /** The Python interpreter of the trainer's virtual environment. */
  python: string;
  /** The base model that the operator says the policy server serves (CAMPAIGN_BASE_ID). */
  baseId?: string | undefined;
}

/** Of the activities that make rollouts. */
export type PolicyDependencies = Dependencies & { client: PolicyClient };
/** Of the activities that train. */
export type GpuDependencies = PolicyDependencies & { gpus: GpuGroups; merge: Merge };

/** For a part that may take long: its progress is the activity's heartbeat. */
export function working(title: string): Work {
  const context = Context.current();
  return {
    signal: context.cancellationSignal,
    progress: (done, total) => context.heartbeat({ kind: 'analysis', title, done, total } satisfies AnalysisHeartbeat),
  };
}

/** Pieces of replies come by the hundred: they are told of no more often. */
const PIECES_MS = 500;

/** For a part that may ask a language model: what comes of a reply is progress too. */
export function asking(
  o: Payer & { store: ArtifactStore; title: string; role: PayingRole },
): Work & { ledger: Ledger } {
  const { store, campaign, budget, role, title } = o;
  const context = Context.current();
  const told = { done: 0, total: 1, characters: 0, at: 0 };
  const tell = (): void => {
    const { done, total, characters } = told;
    told.at = Date.now();
    const heard = characters > 0 && { characters };
    context.heartbeat({ kind: 'analysis', title, done, total, ...heard } satisfies AnalysisHeartbeat);
  };
  const isDue = () => Date.now() - told.at >= PIECES_MS;
  return {
    signal: context.cancellationSignal,
    progress(done, total) {
      const further = done !== told.done || total !== told.total;
      Object.assign(told, { done, total });
      if (further || isDue()) tell();
    },
    ledger: openLedger({
      ...{ store, campaign, budget, role },
      heard(piece) {
        told.characters += piece.length;
        if (isDue()) tell();
      },
    }),
  };
}

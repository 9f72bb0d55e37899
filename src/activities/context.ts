/** What every activity is given, and how it reports its progress. */
import { Context } from '@temporalio/activity';
import { canonical } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import type { Environment } from '../domain/environment';
import type { EnvironmentSpec } from '../domain/kinds';
import type { AnalysisHeartbeat, Work } from '../domain/work';
import type { EnvironmentKind } from '../environments/kinds';
import { openEnvironment } from '../environments/open';
import { openLedger } from '../language-model/ledger';
import type { Ledger } from '../language-model/types';
import type { PolicyClient } from '../policy/client';
import type { Merge } from '../policy/merge';
import type { Registry } from '../registry';
import type { GpuGroups } from '../training/gpu-groups';
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
export function asking(o: Payer & { store: ArtifactStore; title: string }): Work & { ledger: Ledger } {
  const { store, campaign, budget, title } = o;
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
      ...{ store, campaign, budget },
      heard(piece) {
        told.characters += piece.length;
        if (isDue()) tell();
      },
    }),
  };
}

/** Environments that are open in this worker: one of each, shared by all its activities. */
export class EnvironmentPool {
  private readonly open = new Map<string, Promise<Environment>>();

  constructor(
    private readonly store: ArtifactStore,
    private readonly kinds: readonly EnvironmentKind[],
  ) {}

  get(spec: EnvironmentSpec): Promise<Environment> {
    const key = canonical(spec);
    const known = this.open.get(key);
    if (known) return known;
    const opening = Promise.resolve(openEnvironment(spec, { store: this.store, kinds: this.kinds }));
    this.open.set(key, opening);
    // What failed to open is tried again by the next activity.
    opening.catch(() => this.open.delete(key));
    return opening;
  }

  async close(): Promise<void> {
    const all = await Promise.allSettled(this.open.values());
    this.open.clear();
    await Promise.all(all.map((e) => (e.status === 'fulfilled' ? e.value.close() : undefined)));
  }
}

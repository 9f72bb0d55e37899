/**
 * Plays the rollouts that a batch lacks, each with fresh attempts after failures that may pass. A rollout that was scored is durable before it counts as
 * done; a broken one has no reward; the batch stops as soon as too many are broken.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { forEachBounded } from '../domain/concurrency';
import { type FailureType, isFailure, OutsideFailure } from '../domain/failures';
import {
  type BrokenRollout,
  type Purpose,
  type Rollout,
  type ScoredRollout,
  tooManyBroken,
  tooManyFailure,
} from '../domain/rollout';
import { count } from '../metrics';
import type { PolicyClient } from '../policy/client';
import type { BatchPlan, PlannedRollout } from './batch';
import type { Chunks } from './chunks';
import { play, type PlayOptions } from './play';

export interface MakeOptions extends Omit<PlayOptions, 'client' | 'onTurn' | 'signal'> {
  concurrency: number;
  /** The stage that uses the batch; no part of its key. */
  purpose: Purpose;
  /** Name of the batch for people; no part of its key. */
  title: string;
  maxAttempts: number;
  /** The share of broken rollouts above which the batch stops; without it, the batch stops only if nothing is scored. */
  maxBrokenShare?: number;
  client: Pick<PolicyClient, 'sample' | 'reachable'>;
  /** Called after every turn, and after every rollout that is durable or broken. */
  onProgress?: (progress: RollOutProgress) => void;
  signal?: AbortSignal;
}

export interface RollOutProgress {
  done: number;
  total: number;
  broken: number;
  /** Finished turns of all rollouts, the broken ones included. */
  turns: number;
}

interface MakeMissing {
  options: MakeOptions;
  plan: BatchPlan;
  chunks: Chunks;
  /** The scored and durable rollouts, by key. The function adds those that it plays. */
  held: Map<string, ScoredRollout>;
}

/** Plays the plan's rollouts that are not in `held`. Returns the failed ones by key; throws once more than `maxBrokenShare` have failed, or BudgetSpent. */
export async function makeMissing(o: MakeMissing): Promise<Map<string, BrokenRollout>> {
  const { options, plan, chunks, held } = o;
  const { concurrency, onProgress, purpose, title, signal, maxBrokenShare: share = 1 } = options;
  const total = plan.rollouts.length;
  const broken = new Map<string, BrokenRollout>();
  let turns = 0;
  let spent: OutsideFailure | undefined;
  const report = () => onProgress?.({ done: held.size + broken.size, total, broken: broken.size, turns });
  const onTurn = () => {
    turns += 1;
    report();
  };

  async function keepScored(rollout: ScoredRollout): Promise<void> {
    held.set(rollout.key, await chunks.append(rollout));
    report();
  }

  function keepBroken(rollout: BrokenRollout): void {
    broken.set(rollout.key, rollout);
    report();
    const scored = held.size;
    if (!tooManyBroken({ broken: broken.size, scored, total, share })) return;
    throw tooManyFailure([...broken.values()], { what: title, scored, total, share });
  }

  async function playOne(planned: PlannedRollout, stopped: AbortSignal): Promise<void> {
    if (spent) return;
    try {
      const rollout = await attempt(planned, { ...options, onTurn, signal: stopped });
      const cause = rollout.status === 'broken' ? rollout.error.type : '';
      count('campaign_rollouts', 1, { purpose, outcome: rollout.status, cause });
      if (rollout.status === 'scored') await keepScored(rollout);
      else keepBroken(rollout);
    } catch (error) {
      if (!isFailure(error, 'BudgetSpent')) throw error;
      // Running episodes are already paid for, so they are played to their ends.
      spent = error;
    }
  }

  // Episodes open environments and ask partners, which is paid for, before they ask the policy.
  if (held.size < total && !(await options.client.reachable()))
    throw new OutsideFailure('PolicyServerUnavailable', `the policy server does not answer; ${title} waits for it`);

  if (held.size > 0) report();
  const items = plan.rollouts.filter(({ key }) => !held.has(key));
  await forEachBounded({ items, concurrency, signal, work: playOne });
  if (spent) throw spent;
  return broken;
}

type AttemptOptions = PlayOptions & Pick<MakeOptions, 'maxAttempts' | 'client'>;

/** Failures of what all rollouts of the batch need: its adapters and their merge, the policy server, the disk, the settings, money. They stop the batch. */
const OF_THE_BATCH: readonly FailureType[] = [
  'ArtifactDamaged',
  'DiskFull',
  'PythonFailed',
  'BadInput',
  'AdapterRefused',
  'PolicyServerWrong',
  'WrongBaseModel',
  'EnvironmentMissing',
  'BudgetSpent',
];

const RETRY_MS = 250;

/** Plays one rollout, and begins again after failures that may pass. Throws failures that would break all the other rollouts too. */
async function attempt(planned: PlannedRollout, options: AttemptOptions): Promise<Rollout> {
  const { maxAttempts, client, signal } = options;
  for (let attempts = 1; ; attempts++) {
    try {
      return await play(planned, options);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof OutsideFailure) || OF_THE_BATCH.includes(error.type)) throw error;
      // Without the server all the other rollouts would break one by one. The step is tried again later.
      if (isFailure(error, 'PolicyServerUnavailable', 'PolicyServerError') && !(await client.reachable())) throw error;
      if (!error.retryable || attempts >= maxAttempts) {
        if (error.type === 'PartnerUnavailable') throw error;
        const { type, message } = error;
        const { key, task, attempt } = planned;
        return { status: 'broken', key, task, attempt, error: { type, message } };
      }
      await sleep(RETRY_MS * attempts, undefined, { signal });
    }
  }
}

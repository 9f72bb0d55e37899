/**
 * The steps of an analysis in this process, over conversations instead of a campaign's base rollouts: the steps, keys and failure rules are
 * those of a campaign (analyst/steps.ts), only Temporal is missing. Invariants: a pass that can't be used is left out with its reason and never
 * filled in; what stops one pass for a reason that all of them share stops all of them.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Analyst } from '../../analyst/analyst';
import {
  type Analysis,
  candidatesKey,
  discoverCandidates,
  labelPass,
  labelsKey,
  readCandidates,
  selectCandidates,
} from '../../analyst/steps';
import { canonical, digest } from '../../artifacts/hash';
import { readJson } from '../../artifacts/json';
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import type { SelectionRule } from '../../domain/campaign';
import {
  type Candidate,
  type Discovery,
  discoverySchema,
  type LabelPass,
  labelPassSchema,
  type Selection,
} from '../../domain/capability';
import { isFailure, OF_A_PASS, OutsideFailure, retryOf } from '../../domain/failures';
import type { ScoredRollout } from '../../domain/rollout';
import { backoffMs, ROUND } from '../../domain/retries';
import type { Ledger } from '../../language-model/types';
import type { Conversations } from './conversations';
import type { Progress } from './progress';

/** Of discovery and passes: conversations have no campaign to take it from. */
export const SEED = 1;

interface Inputs {
  conversations: Pick<Conversations, 'rollouts' | 'description'>;
  analyst: Analyst;
  rule: SelectionRule;
  store: ArtifactStore;
}

/** Puts the conversations into the store, one line each, as a campaign keeps its base rollouts. */
export async function storeRollouts(store: ArtifactStore, rollouts: readonly ScoredRollout[]): Promise<ArtifactRef> {
  const key = `conversations/${digest(rollouts.map((rollout) => rollout.key))}`;
  // Together they may be longer than a text can be.
  const body = Buffer.concat(rollouts.map((rollout) => Buffer.from(`${canonical(rollout)}\n`)));
  return store.put({ key, producer: 'analyse', inputs: [], mediaType: 'application/jsonl', body });
}

async function analysisOf({ conversations, analyst, store }: Inputs): Promise<Analysis> {
  const { rollouts, description } = conversations;
  const ref = await storeRollouts(store, rollouts);
  return { store, analyst, description, seed: SEED, rollouts: ref, readRollouts: () => Promise.resolve(rollouts) };
}

/** What an earlier run finished: it is not asked for again. */
export interface Finished {
  /** Absent where discovery is to be done. */
  candidates?: readonly Candidate[];
  passes: number;
}

export async function finishedSteps(inputs: Inputs): Promise<Finished> {
  const { rule, store } = inputs;
  const analysis = await analysisOf(inputs);
  const candidates = await store.find(candidatesKey({ ...analysis, rule }));
  if (!candidates) return { passes: 0 };
  const keys = Array.from({ length: rule.passes }, (_, pass) => labelsKey({ ...analysis, candidates, pass }));
  const passes = await Promise.all(keys.map((key) => store.find(key)));
  return { candidates: await readCandidates(store, candidates), passes: passes.filter(Boolean).length };
}

export interface AnalysisResult {
  discovery: Discovery;
  passes: LabelPass[];
  failedPasses: { pass: number; reason: string }[];
  selection: Selection;
}

interface Running extends Inputs {
  ledger: Ledger;
  progress: Progress;
  signal: AbortSignal;
}

export async function runSteps(run: Running): Promise<AnalysisResult> {
  const { store, rule, conversations, ledger, progress, signal } = run;
  const analysis = await analysisOf(run);
  const candidates = await retried(run, () =>
    discoverCandidates(analysis, {
      rule,
      quotable: () => Promise.resolve(new Set(conversations.rollouts.map(({ key }) => key))),
      work: () => ({ ledger, signal, progress: progress.discovering }),
    }),
  );
  const discovery = await readJson(store, candidates, discoverySchema);
  const ended = discovery.candidates.length === 0 ? [] : await labelPasses(run, analysis, candidates);
  const labels = ended.flatMap((one) => ('ref' in one ? [one.ref] : []));
  const failures = ended.flatMap((one) => ('failure' in one ? [one] : []));
  // Without any pass there is nothing to show: whoever asked is there to see why, and to ask again.
  if (labels.length === 0 && failures[0]) {
    const { type, message } = failures[0].failure;
    throw new OutsideFailure(type, `all ${failures.length} labeling passes failed, the first: ${message}`);
  }
  const selected = await selectCandidates(analysis, { rule, candidates, labels, progress: () => undefined });
  const passes = await Promise.all(labels.map((ref) => readJson(store, ref, labelPassSchema)));
  const failedPasses = failures.map(({ pass, failure }) => ({ pass, reason: reasonHere(failure) }));
  return { discovery, passes, failedPasses, selection: selected.selection };
}

/** Of a failure that speaks of a campaign file's budget: here it is a flag. */
export const reasonHere = ({ type, message }: OutsideFailure): string =>
  type === 'BudgetSpent'
    ? message.replace(/; raise .*/, '; give the same command with a higher --max-dollars: what was paid for is kept')
    : message;

type EndedPass = { ref: ArtifactRef } | { pass: number; failure: OutsideFailure };

/** All passes side by side. */
async function labelPasses(run: Running, analysis: Analysis, candidates: ArtifactRef): Promise<EndedPass[]> {
  const { rule, ledger, progress } = run;
  const stop = new AbortController();
  const signal = AbortSignal.any([run.signal, stop.signal]);
  // Each request listens, and there are many.
  setMaxListeners(0, signal);
  const ended = await Promise.allSettled(
    Array.from({ length: rule.passes }, async (_, pass): Promise<EndedPass> => {
      const labeling = (done: number, total: number) => progress.labeling(pass, done, total);
      const work = () => ({ ledger, signal, progress: labeling });
      try {
        const ref = await retried({ progress, signal }, () => labelPass(analysis, { candidates, pass, work }));
        progress.passEnded(pass);
        return { ref };
      } catch (failure) {
        if (!isFailure(failure, ...OF_A_PASS)) {
          stop.abort(failure);
          throw failure;
        }
        progress.passEnded(pass, reasonHere(failure));
        return { pass, failure };
      }
    }),
  );
  if (stop.signal.aborted) throw stop.signal.reason;
  return ended.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
}

/** An endpoint that never answered is given up so soon, since its address may be wrong. */
const ATTEMPTS_UNANSWERED = 3;

/**
 * A step, tried again as one of a campaign is: with the same back-off, never sooner than the other side says, for as many attempts as there are
 * before a campaign tells a person. Here that person waits for the command, which ends then and goes on when it is given again.
 */
export async function retried<Result>(
  { progress, signal }: { progress: Pick<Progress, 'waits' | 'hasAnswer'>; signal: AbortSignal },
  step: () => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt++)
    try {
      return await step();
    } catch (failure) {
      if (signal.aborted || !(failure instanceof OutsideFailure) || retryOf(failure.type) === 'never') throw failure;
      const known = progress.hasAnswer() || failure.retryAfterMs !== undefined;
      if (attempt >= (known ? ROUND : ATTEMPTS_UNANSWERED)) throw failure;
      const waitMs = Math.max(failure.retryAfterMs ?? 0, backoffMs(attempt));
      progress.waits(failure.message, waitMs);
      await sleep(waitMs, undefined, { signal });
    }
}

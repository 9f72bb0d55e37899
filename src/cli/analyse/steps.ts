/**
 * The steps of an analysis in this process, over conversations in place of base rollouts: steps, keys and failure rules are those of a campaign
 * (analyst/steps.ts), only Temporal is missing. A pass that can't be used is left out with its reason and never filled in; what stops one pass for
 * a reason that all of them share stops all of them.
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
import { readJson, type ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import type { SelectionRule } from '../../domain/campaign';
import { type Candidate, discoverySchema, labelPassSchema } from '../../domain/capability';
import { forEachBounded } from '../../domain/concurrency';
import { isFailure, OF_A_PASS, OutsideFailure, retryOf, backoffMs, ROUND } from '../../domain/failures';
import type { ScoredRollout } from '../../domain/rollout';
import type { Ledger } from '../../language-model/model';
import type { Conversations } from './conversations';
import type { Progress } from './progress';

/** Of discovery and passes: conversations have no campaign to take it from. */
export const SEED = 1;

/** Puts the conversations into the store, one line each, as a campaign keeps its base rollouts. */
export async function storeRollouts(store: ArtifactStore, rollouts: readonly ScoredRollout[]): Promise<ArtifactRef> {
  const key = `conversations/${digest(rollouts.map((rollout) => rollout.key))}`;
  // Together they may be longer than a text can be.
  const body = Buffer.concat(rollouts.map((rollout) => Buffer.from(`${canonical(rollout)}\n`)));
  return store.put({ key, producer: 'analyse', inputs: [], mediaType: 'application/jsonl', body });
}

export async function openAnalysis(
  store: ArtifactStore,
  analyst: Analyst,
  { rollouts, description }: Pick<Conversations, 'rollouts' | 'description'>,
): Promise<Analysis> {
  const ref = await storeRollouts(store, rollouts);
  return { store, analyst, description, seed: SEED, rollouts: ref, readRollouts: () => Promise.resolve(rollouts) };
}

/** What an earlier run finished: it is not asked for again. Without `candidates` discovery is to be done. */
export interface Finished {
  candidates?: readonly Candidate[];
  passes: number;
}

export async function finishedSteps(analysis: Analysis, rule: SelectionRule): Promise<Finished> {
  const { store } = analysis;
  const candidates = await store.find(candidatesKey(analysis, rule));
  if (!candidates) return { passes: 0 };
  const keys = Array.from({ length: rule.passes }, (_, pass) => labelsKey(analysis, candidates, pass));
  const passes = await Promise.all(keys.map((key) => store.find(key)));
  return { candidates: await readCandidates(store, candidates), passes: passes.filter(Boolean).length };
}

interface Running {
  analysis: Analysis;
  rule: SelectionRule;
  ledger: Ledger;
  progress: Progress;
  signal: AbortSignal;
}

export type AnalysisResult = Awaited<ReturnType<typeof runSteps>>;

export async function runSteps(run: Running) {
  const { analysis, rule, ledger, progress, signal } = run;
  const { store } = analysis;
  // Each request listens, and there are many.
  setMaxListeners(0, signal);
  const candidates = await retried(run, () =>
    discoverCandidates(analysis, {
      rule,
      quotable: async (rollouts) => new Set(rollouts.map(({ key }) => key)),
      work: () => ({ ledger, signal, progress: progress.discovering }),
    }),
  );
  const discovery = await readJson(store, candidates, discoverySchema);
  const { labels, failures } = discovery.candidates.length > 0 ? await labelPasses(run, candidates) : NOTHING_LABELED;
  // Without any pass there is nothing to show: whoever asked is there to see why, and to ask again.
  if (labels.length === 0 && failures[0]) {
    const { type, message } = failures[0].failure;
    throw new OutsideFailure(type, `all ${failures.length} labeling passes failed, the first: ${message}`);
  }
  const { selection } = await selectCandidates(analysis, { rule, candidates, labels });
  const passes = await Promise.all(labels.map((ref) => readJson(store, ref, labelPassSchema)));
  const failedPasses = failures.map(({ pass, failure }) => ({ pass, reason: reasonHere(failure) }));
  return { discovery, passes, failedPasses, selection };
}

/** Of a failure that speaks of a campaign file's budget: here it is a flag. */
export const reasonHere = ({ type, message }: OutsideFailure): string =>
  type === 'BudgetSpent'
    ? message.replace(/; raise .*/, '; give the same command with a higher --max-dollars: what was paid for is kept')
    : message;

interface LabeledPasses {
  labels: ArtifactRef[];
  failures: { pass: number; failure: OutsideFailure }[];
}
const NOTHING_LABELED: LabeledPasses = { labels: [], failures: [] };

/** All passes side by side. */
async function labelPasses(run: Running, candidates: ArtifactRef): Promise<LabeledPasses> {
  const { analysis, rule, ledger, progress } = run;
  const items = Array.from({ length: rule.passes }, (_, pass) => pass);
  const ended: (ArtifactRef | OutsideFailure)[] = [];
  await forEachBounded({
    items,
    concurrency: rule.passes,
    signal: run.signal,
    async work(pass, signal) {
      const told = (done: number, total: number) => progress.labeling(pass, done, total);
      const work = () => ({ ledger, signal, progress: told });
      try {
        ended[pass] = await retried({ progress, signal }, () => labelPass(analysis, { candidates, pass, work }));
        progress.passEnded(pass);
      } catch (failure) {
        if (!isFailure(failure, ...OF_A_PASS)) throw failure;
        ended[pass] = failure;
        progress.passEnded(pass, reasonHere(failure));
      }
    },
  });
  return {
    labels: ended.flatMap((one) => (one instanceof OutsideFailure ? [] : [one])),
    failures: ended.flatMap((failure, pass) => (failure instanceof OutsideFailure ? [{ pass, failure }] : [])),
  };
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

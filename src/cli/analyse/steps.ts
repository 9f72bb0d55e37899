/**
 * Runs the steps of an analysis in this process, on conversations instead of base rollouts. Steps, keys and failure rules are those of a campaign
 * (analyst/steps.ts), without Temporal. A failed pass is left out with its reason; a failure that would affect all passes stops all of them.
 */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Analyst } from '../../analyst/analyst';
import { type Analysis, discoverCandidates, labelPass, readCandidates, selectCandidates } from '../../analyst/steps';
import { canonical, digest } from '../../store/hash';
import { type ArtifactStore, readJson } from '../../store/store';
import type { ArtifactRef } from '../../domain/artifacts';
import type { SelectionRule } from '../../domain/campaign';
import { labelPassSchema } from '../../domain/capability';
import { forEachBounded } from '../../domain/concurrency';
import { backoffMs, isFailure, PASS_SKIPPING_FAILURES, OutsideFailure, retryOf } from '../../domain/failures';
import type { SelectionResult } from '../../domain/results';
import type { Ledger } from '../../llm/model';
import { duration } from '../../report/format';
import { note } from '../../terminal';
import type { Conversations } from './conversations';

/** The seed of discovery and passes, which a campaign file would give. */
const SEED = 1;

/** Puts the conversations into the store, one line each, as a campaign keeps its base rollouts. */
export async function openAnalysis(
  store: ArtifactStore,
  analyst: Analyst,
  { rollouts, description }: Pick<Conversations, 'rollouts' | 'description'>,
): Promise<Analysis> {
  const key = `conversations/${digest(rollouts.map((rollout) => rollout.key))}`;
  // Together they may be longer than a text can be.
  const body = Buffer.concat(rollouts.map((rollout) => Buffer.from(`${canonical(rollout)}\n`)));
  const ref = await store.put({ key, producer: 'analyse', inputs: [], mediaType: 'application/jsonl', body });
  return { store, analyst, description, seed: SEED, rollouts: ref, readRollouts: () => Promise.resolve(rollouts) };
}

interface Running {
  analysis: Analysis;
  rule: SelectionRule;
  ledger: Ledger;
  signal: AbortSignal;
}

export type AnalysisResult = Awaited<ReturnType<typeof runSteps>>;

export async function runSteps(run: Running) {
  const { analysis, rule, ledger, signal } = run;
  const { store } = analysis;
  // Each request listens, and there are many.
  setMaxListeners(0, signal);
  const workOf = (signal: AbortSignal) => () => ({ ledger, signal, progress: () => {} });
  note('discovery');
  const candidates = await retried(signal, () =>
    discoverCandidates(analysis, {
      rule,
      failuresAlone: true,
      quotable: async (rollouts) => new Set(rollouts.map(({ key }) => key)),
      work: workOf(signal),
    }),
  );

  const found = await readCandidates(store, candidates);
  const ended: (ArtifactRef | OutsideFailure)[] = [];
  let done = 0;
  await forEachBounded({
    items: found.length > 0 ? Array.from({ length: rule.passes }, (_, pass) => pass) : [],
    concurrency: rule.passes,
    signal,
    async work(pass, signal) {
      const work = workOf(signal);
      try {
        ended[pass] = await retried(signal, () => labelPass(analysis, { candidates, pass, work }));
      } catch (failure) {
        if (!isFailure(failure, ...PASS_SKIPPING_FAILURES)) throw failure;
        ended[pass] = failure;
        note(`pass ${pass + 1} failed and is left out: ${reasonHere(failure).split('\n')[0]}`);
      }
      note(`labels: ${++done} of ${rule.passes} passes done`);
    },
  });

  const labels = ended.filter((one) => !(one instanceof OutsideFailure)) as ArtifactRef[];
  const failures = ended.flatMap((failure, pass) => (failure instanceof OutsideFailure ? [{ pass, failure }] : []));
  if (labels.length === 0 && failures[0]) {
    const { type, message } = failures[0].failure;
    throw new OutsideFailure(type, `all ${failures.length} labeling passes failed, the first: ${message}`);
  }
  const { ref, selected } = await selectCandidates(analysis, { rule, candidates, labels });
  const failedPasses = failures.map(({ pass, failure }) => ({ pass, reason: reasonHere(failure) }));
  const selection: SelectionResult = { candidates, labels, failedPasses, selection: ref, selected };
  return { selection, passes: await Promise.all(labels.map((one) => readJson(store, one, labelPassSchema))) };
}

/** Returns the reason of a failure, with the flag in place of the campaign file's budget. */
export const reasonHere = ({ type, message }: OutsideFailure): string =>
  type === 'BudgetSpent'
    ? message.replace(/; raise .*/, '; give the same command with a higher --max-dollars: what was paid for is kept')
    : message;

/** Two minutes of waiting. Then the command ends, and the same command continues. */
export const ATTEMPTS = 8;

/** Retries a step with the back-off of a campaign, but not before the time that the endpoint asks for. */
export async function retried<Result>(signal: AbortSignal, step: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++)
    try {
      return await step();
    } catch (failure) {
      const isFinal = !(failure instanceof OutsideFailure) || retryOf(failure.type) === 'never' || attempt === ATTEMPTS;
      if (signal.aborted || isFinal) throw failure;
      const waitMs = Math.max(failure.retryAfterMs ?? 0, backoffMs(attempt));
      note(`${failure.message.split('\n')[0]}; trying again in ${duration(waitMs / 1000)}`);
      await sleep(waitMs, undefined, { signal });
    }
}

/**
 * The steps of an analysis in this process, over conversations in place of base rollouts: steps, keys and failure rules are those of a campaign
 * (analyst/steps.ts), only Temporal is missing. A pass that can't be used is left out with its reason and never filled in; what stops one pass for
 * a reason that all of them share stops all of them. How far they are is told on stderr: one line that is drawn over on a terminal, a line a step
 * elsewhere; what comes from an endpoint can do nothing to the terminal.
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
import { canonical, digest } from '../../store/hash';
import { type ArtifactStore, readJson } from '../../store/store';
import type { ArtifactRef } from '../../domain/artifacts';
import type { SelectionRule } from '../../domain/campaign';
import { type Candidate, labelPassSchema } from '../../domain/capability';
import { forEachBounded } from '../../domain/concurrency';
import { costOf } from '../../domain/endpoints';
import {
  backoffMs,
  isFailure,
  PASS_SKIPPING_FAILURES,
  OutsideFailure,
  retryOf,
  MAX_FAULTS,
} from '../../domain/failures';
import { plainText, plainLine } from '../../domain/plain-text';
import type { SelectionResult } from '../../domain/results';
import type { ScoredRollout } from '../../domain/rollout';
import type { Ledger } from '../../llm/model';
import { duration, wholeNumber } from '../../report/format';
import type { Conversations } from './conversations';

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
  const found = await readCandidates(store, candidates);
  const { labels, failures } = found.length > 0 ? await labelPasses(run, candidates) : NOTHING_LABELED;
  // Without any pass there is nothing to show: whoever asked is there to see why, and to ask again.
  if (labels.length === 0 && failures[0]) {
    const { type, message } = failures[0].failure;
    throw new OutsideFailure(type, `all ${failures.length} labeling passes failed, the first: ${message}`);
  }
  const { ref, selected } = await selectCandidates(analysis, { rule, candidates, labels });
  const failedPasses = failures.map(({ pass, failure }) => ({ pass, reason: reasonHere(failure) }));
  const selection: SelectionResult = { candidates, labels, failedPasses, selection: ref, selected };
  return {
    selection,
    candidates: found,
    passes: await Promise.all(labels.map((one) => readJson(store, one, labelPassSchema))),
  };
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
        if (!isFailure(failure, ...PASS_SKIPPING_FAILURES)) throw failure;
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
      if (attempt >= (known ? MAX_FAULTS : ATTEMPTS_UNANSWERED)) throw failure;
      const waitMs = Math.max(failure.retryAfterMs ?? 0, backoffMs(attempt));
      progress.waits(failure.message, waitMs);
      await sleep(waitMs, undefined, { signal });
    }
}

interface Output {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

/** Pieces of replies come by the hundred a second. */
const DRAW_EVERY_MS = 200;

export type Progress = ReturnType<typeof showProgress>;

export function showProgress(passes: number, out: Output) {
  const live = out.isTTY === true;
  /** How much of each pass is done. */
  const shares = Array<number>(passes).fill(0);
  const paid: { requests: number; characters: number; dollars?: number } = { requests: 0, characters: 0 };
  let [step, drawn, lastLine] = ['', '', ''];
  let [drawnAt, passesEnded] = [0, 0];

  function close(): void {
    if (drawn !== '') out.write('\r\u001b[K');
    drawn = '';
  }

  function line(text: string): void {
    // Passes that run side by side meet the same trouble.
    if (text === lastLine) return;
    lastLine = text;
    close();
    out.write(`${plainText(text)}\n`);
    draw();
  }

  function draw(): void {
    if (!live) return;
    const parts = [
      step,
      paid.characters > 0 && `${wholeNumber(paid.characters)} characters received`,
      paid.requests > 0 && `${wholeNumber(paid.requests)} requests`,
      paid.dollars !== undefined && `$${paid.dollars.toFixed(2)}`,
    ];
    const text = plainLine(parts.filter(Boolean).join(' · ')).slice(0, Math.max(1, (out.columns || 80) - 1));
    if (text === drawn) return;
    close();
    out.write((drawn = text));
    drawnAt = Date.now();
  }

  /** A log would be full of counts and percents. */
  function toStep(text: string, count: string): void {
    const next = live ? text + count : text;
    if (next === step) return;
    step = next;
    if (live) draw();
    else line(step);
  }

  function labeling(pass: number, done: number, total: number): void {
    shares[pass] = total > 0 ? done / total : 0;
    const share = shares.reduce((sum, one) => sum + one, 0) / passes;
    toStep(`labels: ${passesEnded} of ${passes} passes done`, `, ${Math.floor(100 * share)}%`);
  }

  return {
    discovering: (done: number, total: number): void => toStep('discovery', `: ${done} of ${total}`),
    labeling,

    /** `reason`: why it failed and is left out. */
    passEnded(pass: number, reason?: string): void {
      passesEnded++;
      if (reason !== undefined) line(`pass ${pass + 1} failed and is left out: ${reason.split('\n')[0]}`);
      labeling(pass, 1, 1);
    },

    /** A step is tried again after so long. */
    waits: (reason: string, waitMs: number): void =>
      line(`${reason.split('\n')[0]}; trying again in ${duration(waitMs / 1000)}`),

    /** A piece of some reply has come. */
    received(piece: string): void {
      paid.characters += piece.length;
      if (Date.now() - drawnAt >= DRAW_EVERY_MS) draw();
    },

    /** Whether the endpoint has said anything yet. */
    hasAnswer: (): boolean => paid.characters > 0,

    /** The ledger, of which what is paid for is shown. */
    counting: (ledger: Ledger): Ledger => ({
      ...ledger,
      async keep(key, kept) {
        await ledger.keep(key, kept);
        const { dollars } = costOf(kept.reply.usage, kept.price);
        paid.requests++;
        if (dollars !== undefined) paid.dollars = (paid.dollars ?? 0) + dollars;
        draw();
      },
    }),

    /** Nothing more will come. */
    close,
  };
}

/**
 * Lineage: leads from a figure or an artifact back to its batches of rollouts, by the provenance of every artifact. Invariant: an artifact is listed once,
 * at the first place that leads to it.
 */
import type { ArtifactStore } from '../store/store';
import { type ArtifactRef, type Figure, figuresIn } from '../domain/artifacts';
import type { Outcome } from '../domain/outcomes';
import { isSuccess } from '../domain/rollout';
import { readOutcomes, ROLLOUTS_MEDIA_TYPE } from '../rollout/read';
import { measuredText, shortSha, wholeNumber } from './format';

interface RolloutCounts {
  scored: number;
  broken: number;
  successes: number;
}

export interface LineageStep {
  /** Artifacts between it and the start. */
  depth: number;
  ref: ArtifactRef;
  /** Absent if the store has no provenance of it. */
  key?: string;
  producer?: string;
  /** Only for batches of rollouts. */
  rollouts?: RolloutCounts;
  /** Why it can't be followed: not in the store, or damaged. */
  problem?: string;
}

interface Lineage {
  /** The start of the lineage, unless that is an artifact, the first of the steps. */
  figure?: Figure;
  /** Inputs of the start, each followed by its own inputs. */
  steps: LineageStep[];
  /** Totals over all batches. A rollout of several batches counts once, as scored if it is scored in one of them. */
  totals: RolloutCounts & { batches: number };
}

/** Thrown where an id is no figure and no artifact. */
export class UnknownStartError extends Error {
  override name = 'UnknownStartError';
  constructor(start: string) {
    super(`'${start}' is no rollout, figure or artifact`);
  }
}

/** Walks back from artifacts. `nearest` stops at batches of rollouts. */
async function walk(store: ArtifactStore, from: readonly ArtifactRef[], { nearest = false } = {}) {
  const steps: LineageStep[] = [];
  const batches = new Map<string, Outcome[]>();
  async function visit(ref: ArtifactRef, depth: number): Promise<void> {
    if (steps.some((step) => step.ref.sha256 === ref.sha256)) return;
    const step: LineageStep = { depth, ref };
    steps.push(step);
    try {
      const { key, producer, inputs } = await store.provenance(ref);
      Object.assign(step, { key, producer });
      const isBatch = ref.mediaType === ROLLOUTS_MEDIA_TYPE && producer.startsWith('rollouts');
      if (isBatch) {
        const outcomes = await readOutcomes({ store, ref });
        batches.set(ref.sha256, outcomes);
        step.rollouts = countsOf(outcomes);
      }
      if (!isBatch || !nearest) for (const input of inputs) await visit(input, depth + 1);
    } catch (error) {
      step.problem = error instanceof Error ? error.message : String(error);
    }
  }
  for (const ref of from) await visit(ref, 0);
  return { steps, batches };
}

function countsOf(outcomes: readonly Outcome[]): RolloutCounts {
  const byKey = new Map<string, Outcome>();
  for (const one of outcomes) if (byKey.get(one.key)?.status !== 'scored') byKey.set(one.key, one);
  const scored = [...byKey.values()].filter((one) => one.status === 'scored');
  return { scored: scored.length, broken: byKey.size - scored.length, successes: scored.filter(isSuccess).length };
}

interface Start {
  store: ArtifactStore;
  /** A report, or another value with figures. */
  report?: object | undefined;
  /** A figure's id, an artifact's key or the beginning of its sha256. */
  start: string;
}

/** @throws UnknownStartError */
async function startOf({ store, report, start }: Start): Promise<{ figure?: Figure; from: ArtifactRef[] }> {
  const figure = report && figuresIn(report).find(({ id }) => id === start);
  if (figure) return { figure, from: figure.from };
  const ref = await store.resolve(start);
  if (ref) return { from: [ref] };
  throw new UnknownStartError(start);
}

/** @throws UnknownStartError */
export async function lineage(ask: Start): Promise<Lineage> {
  const { figure, from } = await startOf(ask);
  const { steps, batches } = await walk(ask.store, from);
  const totals = { batches: batches.size, ...countsOf([...batches.values()].flat()) };
  return { ...(figure && { figure }), steps, totals };
}

/** Returns the sha256 of the batches that a figure or an artifact was made from. @throws UnknownStartError */
export async function batchesBehind(ask: Start): Promise<Set<string>> {
  const { batches } = await walk(ask.store, (await startOf(ask)).from, { nearest: true });
  return new Set(batches.keys());
}

const countsText = ({ scored, broken, successes }: RolloutCounts): string =>
  `${wholeNumber(scored)} rollouts scored (${wholeNumber(successes)} successes), ${wholeNumber(broken)} broken`;

const stepLine = ({ depth, ref, producer, key, rollouts, problem }: LineageStep): string =>
  '  '.repeat(depth) +
  [shortSha(ref.sha256), producer ?? ref.mediaType, rollouts && countsText(rollouts), problem ?? key?.slice(0, 60)]
    .filter(Boolean)
    .join('  ');

/** Formats the steps, each below its result, and the totals, without a final newline. */
export const lineageText = ({ figure, steps, totals }: Lineage): string =>
  [
    ...(figure ? [`${figure.id}  ${measuredText(figure)}, n ${figure.n}`] : []),
    ...steps.map(stepLine),
    `in all: ${totals.batches} batch${totals.batches === 1 ? '' : 'es'}, ${countsText(totals)}`,
  ].join('\n');

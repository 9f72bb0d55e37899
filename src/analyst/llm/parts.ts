/**
 * A list in parts of nearly equal length, in order. Invariants: no part is longer than asked; attempts at one task that stand side by side stay
 * in one part, unless they alone are more than that: then each of their parts mixes outcomes.
 */
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { interleaved } from './chunks';

export function partsAtTasks(chunk: readonly ScoredRollout[], most: number): ScoredRollout[][] {
  const runs = runsOf(chunk).flatMap((run) => (run.length > most ? split(mixed(run), most) : [run]));
  const items = runs.flat();
  const borders = runs.reduce<number[]>((ends, run) => [...ends, (ends.at(-1) ?? 0) + run.length], [0]);
  for (let count = Math.ceil(items.length / most); ; count++) {
    const cuts = Array.from({ length: count + 1 }, (_, n) => nearest(borders, (n * items.length) / count));
    const parts = cuts.slice(1).map((end, n) => items.slice(cuts[n], end));
    // With as many parts as items each run is a part.
    if (parts.every(({ length }) => length <= most)) return parts.filter(({ length }) => length > 0);
  }
}

function runsOf(chunk: readonly ScoredRollout[]): ScoredRollout[][] {
  const runs: ScoredRollout[][] = [];
  for (const rollout of chunk) {
    const last = runs.at(-1);
    if (last?.[0]?.task === rollout.task) last.push(rollout);
    else runs.push([rollout]);
  }
  return runs;
}

const mixed = (run: readonly ScoredRollout[]): ScoredRollout[] =>
  interleaved(run.map((rollout) => ({ rollout, passed: isSuccess(rollout) }))).map(({ rollout }) => rollout);

/** Of two that are as near, the later. */
const nearest = (borders: readonly number[], place: number): number =>
  borders.reduce((best, border) => (Math.abs(border - place) <= Math.abs(best - place) ? border : best), 0);

/** Parts of nearly equal length, none longer than `most`, in order. */
export function split<Item>(items: readonly Item[], most: number): Item[][] {
  const parts = Math.ceil(items.length / most);
  return Array.from({ length: parts }, (_, n) =>
    items.slice(Math.round((n * items.length) / parts), Math.round(((n + 1) * items.length) / parts)),
  );
}

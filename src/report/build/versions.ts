/** The versions of a synthesized environment: what each changed and why, and what the base model did in it. */
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import type { ReportedEpisode, ReportedVersion } from '../../domain/reported-evidence';
import type { SynthesisRound } from '../../domain/calibration';
import type { ScoredRollout } from '../../domain/rollout';
import { readRollouts } from '../../rollout/read';
import { diffOf } from '../diff';
import { calibrationBatches } from './counted';
import { episodeOf, outcomeOf } from './quotes';

/** Lines of a diff. */
const LONGEST_DIFF = 1500;

/** The last line of a module that was written: why training there should transfer. */
const RATIONALE = /\n\/\/ Rationale: ([^\n]*)\n*$/;

export async function versionOf(o: {
  store: ArtifactStore;
  module: ArtifactRef;
  /** The module of the round before. */
  previous?: ArtifactRef;
}): Promise<ReportedVersion> {
  const { store, module, previous } = o;
  const text = async (ref: ArtifactRef): Promise<string> => (await store.read(ref)).toString('utf8');
  const whole = await text(module);
  const source = whole.replace(RATIONALE, '\n');
  const rationale = RATIONALE.exec(whole)?.[1];
  const changes = previous && diffOf({ before: (await text(previous)).replace(RATIONALE, '\n'), after: source });
  const lines = changes?.lines.slice(0, LONGEST_DIFF) ?? [];
  const missing = (changes?.lines.length ?? 0) - lines.length;
  return {
    module,
    lines: source.split('\n').length - 1,
    ...(rationale !== undefined && { rationale }),
    ...(changes && { changes: { ...changes, lines, ...(missing > 0 && { missing }) } }),
  };
}

/** Of the last calibration: the first success and the first failure. */
export async function episodesOf(store: ArtifactStore, rounds: readonly SynthesisRound[]): Promise<ReportedEpisode[]> {
  const batch = calibrationBatches(rounds).at(-1);
  if (!batch) return [];
  const first = new Map<ReportedEpisode['outcome'], ScoredRollout>();
  for await (const rollout of readRollouts({ store, ref: batch.ref })) {
    if (rollout.status !== 'scored' || rollout.messages.length === 0) continue;
    const outcome = outcomeOf(rollout);
    if (!first.has(outcome)) first.set(outcome, rollout);
    if (first.size === 2) break;
  }
  return [...first.values()].map(episodeOf);
}

/**
 * What somebody looks at before they decide. Invariant: figures are those that the campaign decided by, and texts are quoted as they stand in
 * the artifacts.
 */
import type { ArtifactStore } from '../../artifacts/store';
import { decisionText, type Waiting } from '../../domain/approval';
import type { ArtifactRef } from '../../domain/artifacts';
import type { CalibrationReport, SynthesisRound } from '../../domain/calibration';
import { type Candidate, type Selection, selectionSchema } from '../../domain/capability';
import type { ReportedEpisode, ReportedEvidence, ReportedVersion } from '../capability-model';
import type { SelectionResult } from '../../domain/results';
import type { ScoredRollout } from '../../domain/rollout';
import { readScored } from '../../rollout/read';
import { readArtifact } from './figures';
import { quotedIn, readFound, shownOf } from './selection';
import { citationOf, episodeOf, type Labeled, readLabeled } from './quotes';
import { versionOf } from './capabilities';
import { hintsText } from '../adapters';

type Awaited = Pick<Waiting, 'of' | 'names'> & Partial<Waiting>;

/** A selected capability. */
export interface CapabilityView {
  candidate: Candidate;
  votes: number;
  /** Labeling passes; 0 where the analyst selects outright. */
  passes: number;
  coverage?: Selection['capabilities'][number]['coverage'];
  delta?: Selection['capabilities'][number]['delta'];
  citations: ReportedEvidence['citations'];
}

export interface EnvironmentView {
  candidate: Candidate;
  round: number;
  version: ReportedVersion;
  /** What the bands were held against: the last calibration. */
  calibration?: CalibrationReport;
  /** Share of each seed's rollouts in it that were shown the environment's hint; absent where none was. */
  hints?: number;
  /** Of the calibration: the best, the worst and one between. */
  episodes: ReportedEpisode[];
  /** What became of the rounds before. */
  earlier: { round: number; summary: string }[];
}

export type ApprovalView = { waiting: Awaited } & (
  { capabilities: CapabilityView[] } | { environment: EnvironmentView }
);

/** Trajectories that are shown of a capability whose analyst cites no steps. */
const EXAMPLES = 3;

export async function capabilitiesView(o: {
  store: ArtifactStore;
  rollouts: ArtifactRef;
  found: SelectionResult;
}): Promise<CapabilityView[]> {
  const { store, rollouts, found } = o;
  const [schema, what] = [selectionSchema, 'a selection'];
  const selection = await readArtifact({ store, ref: found.selection, schema, what });
  const shown = await readFound({ store, found, selection });
  const examples = new Map(
    found.selected.map(({ candidate }) => {
      const evidence = selection.capabilities.find(({ name }) => name === candidate.name)?.evidence ?? [];
      return [candidate.name, (evidence.length > 0 ? evidence : candidate.examples).slice(0, EXAMPLES)];
    }),
  );
  const quoted = new Set([...quotedIn(shown), ...[...examples.values()].flat()]);
  const labeled = await readLabeled({ store, ref: rollouts, quoted });
  const { evidence = [] } = shownOf({ ...shown, found, labeled });
  return found.selected.map(({ candidate, votes }) => {
    const { name } = candidate;
    const cited = evidence.find(({ capability }) => capability === name)?.citations ?? [];
    const figures = found.labels.length > 0 ? selection.capabilities.find((one) => one.name === name) : undefined;
    return {
      candidate,
      votes,
      passes: found.labels.length + found.failedPasses.length,
      ...(figures && { coverage: figures.coverage, delta: figures.delta }),
      citations: cited.length > 0 ? cited : (examples.get(name) ?? []).map((key) => opening(key, labeled)),
    };
  });
}

/** How a trajectory begins: where nobody cites a step of it. */
function opening(rollout: string, labeled: Labeled): ReportedEvidence['citations'][number] {
  const asked = labeled.quoted.get(rollout)?.messages.findIndex(({ role }) => role === 'user') ?? -1;
  return citationOf({ rollout, ...(asked >= 0 && { message: asked }), says: 'one of its trajectories' }, labeled);
}

export async function environmentView(o: {
  store: ArtifactStore;
  candidate: Candidate;
  rounds: readonly SynthesisRound[];
}): Promise<EnvironmentView> {
  const { store, candidate, rounds } = o;
  const last = rounds.at(-1);
  if (!last) throw new Error(`no version of the environment of ${candidate.name} waits for approval`);
  const previous = rounds.at(-2)?.module;
  const { round, module, aided } = last;
  const counts = aided?.at(-1);
  const { calibration, calibrationRollouts: batch } = counts ?? last;
  return {
    candidate,
    round,
    version: await versionOf({ store, module, ...(previous && { previous }) }),
    ...(calibration && { calibration }),
    ...(counts?.hints !== undefined && { hints: counts.hints }),
    episodes: batch ? samples(await readScored({ store, ref: batch.ref })) : [],
    earlier: rounds.slice(0, -1).map((one) => ({ round: one.round, summary: summaryOf(one) })),
  };
}

function summaryOf({ selfTest, calibration, aided = [], decision }: SynthesisRound): string {
  const accepted = hintsText(aided.at(-1) ?? {});
  if (decision) return [accepted && `accepted ${accepted}`, decisionText(decision)].filter(Boolean).join(', ');
  const reasons = aided.flatMap((one) => one.calibration.reasons.map((reason) => `${hintsText(one)}: ${reason}`));
  return [...selfTest.findings, ...(calibration?.reasons ?? []), ...reasons].join('; ');
}

/** The best, the worst and one between, by reward and then as the batch has them. */
function samples(rollouts: readonly ScoredRollout[]): ReportedEpisode[] {
  const byReward = rollouts.filter(({ messages }) => messages.length > 0).sort((a, b) => b.reward - a.reward);
  const chosen = [0, Math.floor((byReward.length - 1) / 2), byReward.length - 1];
  return [...new Set(chosen.flatMap((at) => byReward[at] ?? []))].map(episodeOf);
}

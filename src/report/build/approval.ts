/**
 * What somebody looks at before they decide. Invariant: figures are those that the campaign decided by, and texts are quoted as they stand in
 * the artifacts.
 */
import type { ArtifactStore } from '../../store/store';
import { decisionText, type Waiting } from '../../domain/approval';
import type { ArtifactRef } from '../../domain/artifacts';
import type { CalibrationReport, SynthesisRound } from '../../domain/calibration';
import type { Candidate, Selection } from '../../domain/capability';
import type { SelectionResult } from '../../domain/results';
import type { ReportedEvidence } from '../capability-model';
import { citationOf, excerpt } from './quotes';
import { passesOf, readSelection } from './selection';

type Statistics = Pick<Selection['capabilities'][number], 'coverage' | 'delta'>;

/** A selected capability. Without statistics where the analyst selects outright. */
export interface CapabilityView extends Partial<Statistics> {
  candidate: Candidate;
  votes: number;
  /** Labeling passes; 0 where the analyst selects outright. */
  passes: number;
  citations: ReportedEvidence['citations'];
}

export interface EnvironmentView {
  candidate: Candidate;
  round: number;
  module: ArtifactRef;
  /** The text of the module. */
  source: string;
  /** The success rates that were compared with the bands. */
  calibration: CalibrationReport | undefined;
  /** The rollouts of the calibration. */
  rollouts: ArtifactRef | undefined;
  /** What became of the rounds before. */
  earlier: { round: number; summary: string }[];
}

export type ApprovalView = { waiting: Pick<Waiting, 'of' | 'names'> & Partial<Waiting> } & (
  { capabilities: CapabilityView[] } | { environment: EnvironmentView }
);

/** Messages that are shown before the last answer. */
const SHOWN_BEFORE = 8;

export async function capabilitiesView(o: {
  store: ArtifactStore;
  rollouts: ArtifactRef;
  result: SelectionResult;
}): Promise<CapabilityView[]> {
  const { result } = o;
  const { selection, evidence, examples, labeled } = await readSelection(o);
  /** The end of a trajectory without cited steps, with the request in view where it is short. */
  const ending = (rollout: string) => {
    const messages = labeled.quoted.get(rollout)?.messages ?? [];
    const last = messages.findLastIndex(({ role }) => role === 'assistant');
    const message = last < 0 ? undefined : last;
    const context = excerpt(messages, message, { neighbours: SHOWN_BEFORE }).filter(({ role }) => role !== 'system');
    return { ...citationOf({ rollout, message, says: 'how one of its conversations ends' }, labeled), context };
  };
  return result.selected.map(({ candidate, votes }) => {
    const { name } = candidate;
    const { citations = [], lacking = [] } = evidence.find(({ capability }) => capability === name) ?? {};
    const cited = [...citations, ...lacking];
    const statistics = selection.capabilities.find((one) => one.name === name);
    return {
      candidate,
      votes,
      passes: passesOf(result),
      ...(result.labels.length > 0 && statistics && { coverage: statistics.coverage, delta: statistics.delta }),
      citations: cited.length > 0 ? cited : (examples.get(name) ?? []).map(ending),
    };
  });
}

export async function environmentView(o: {
  store: ArtifactStore;
  candidate: Candidate;
  rounds: readonly SynthesisRound[];
}): Promise<EnvironmentView> {
  const { store, candidate, rounds } = o;
  const last = rounds.at(-1);
  if (!last) throw new Error(`no version of the environment of ${candidate.name} waits for approval`);
  const { calibration, calibrationRollouts: batch } = last;
  return {
    candidate,
    round: last.round,
    module: last.module,
    source: (await store.read(last.module)).toString('utf8'),
    calibration,
    rollouts: batch?.ref,
    earlier: rounds.slice(0, -1).map((one) => ({ round: one.round, summary: summaryOf(one) })),
  };
}

const summaryOf = ({ selfTest, calibration, decision }: SynthesisRound): string =>
  decision ? decisionText(decision) : [...selfTest.findings, ...(calibration?.reasons ?? [])].join('; ');

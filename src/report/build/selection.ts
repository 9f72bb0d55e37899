/**
 * The selection in the report: every candidate with its statistics, and what an analyst shows for its findings: cited steps, reasons of labels,
 * faults of the environment or the simulated user. Invariants: an analyst that gives none of it has nothing here; a trajectory counts for a
 * labeling pass only if that pass looked at it.
 */
import { readJson, type ArtifactStore } from '../../store/store';
import { decisionText } from '../../domain/approval';
import type { ArtifactRef, Figure } from '../../domain/artifacts';
import type { SelectionRule } from '../../domain/campaign';
import {
  beginningOf,
  type Candidate,
  type Discovery,
  discoverySchema,
  type LabelPass,
  labelPassSchema,
  type Selection,
  selectionSchema,
} from '../../domain/capability';
import type { SelectionResult } from '../../domain/results';
import { agreementOf, lackingIn, type Reading, readingsOf } from '../../domain/selection';
import { readRollouts } from '../../rollout/read';
import type {
  ReportedCandidate,
  ReportedCitation,
  ReportedEvidence,
  ReportedFaults,
  ReportedSelection,
} from '../capability-model';
import { unlabeled } from './capabilities';
import { countFigure, nothing, slug } from './figures';
import { citationOf, type Labeled, labeledOf, type Rollouts, trajectoryOf } from './quotes';

export async function selectionOf(o: Sources & { rule: SelectionRule }): Promise<ReportedSelection> {
  const { result, rollouts, rule } = o;
  const read = await readSelection(o);
  const { failed, passed } = read.labeled;
  const outcome = (name: string, value: number) => countFigure(`selection.${name}`, value, [rollouts], failed + passed);
  return {
    rule,
    failed: outcome('failed', failed),
    passed: outcome('passed', passed),
    candidates: candidatesOf(read, result),
    passes: passesOf(result),
    failedPasses: result.failedPasses,
    reason: read.selection.reason,
    decision: result.decision && decisionText(result.decision),
    evidence: read.evidence.length > 0 ? read.evidence : undefined,
    faults: read.faults,
    from: [result.selection],
  };
}

/** All labeling passes, also those that failed. */
export const passesOf = ({ labels, failedPasses }: SelectionResult): number => labels.length + failedPasses.length;

/** In the order of the selection; where nothing was labeled, of the candidates. */
function candidatesOf({ selection, discovery, passes }: ReadSelection, result: SelectionResult): ReportedCandidate[] {
  // As they were approved, where somebody was asked.
  const selected = new Map(result.selected.map(({ candidate }) => [candidate.name, candidate.definition]));
  const definitions = new Map([...discovery.candidates.map((one) => [one.name, one.definition] as const), ...selected]);
  const named = (name: string) => ({
    ...unlabeled({ name, definition: definitions.get(name) ?? '' }, passesOf(result)),
    selected: selected.has(name),
  });
  if (result.labels.length === 0) return discovery.candidates.map(({ name }) => named(name));
  const agreements = agreementFigures({ discovery, passes }, result.labels);
  return selection.capabilities.map(({ name, votes, passes: n, coverage, delta }) => {
    const figure = (what: string, { mean, std }: { mean: number; std: number }, unit: Figure['unit']): Figure => {
      return { id: `selection.${slug(name)}.${what}`, value: mean, std, n, unit, from: [result.selection] };
    };
    return {
      ...named(name),
      votes,
      coverage: figure('coverage', coverage, 'fraction'),
      delta: figure('delta', delta, 'difference'),
      agreement: agreements.get(name),
    };
  });
}

/** Of the passes on each candidate, where the analyst cites steps or gives reasons. */
function agreementFigures(
  { discovery, passes }: Pick<ReadSelection, 'discovery' | 'passes'>,
  from: ArtifactRef[],
): Map<string, Figure> {
  const cites = citationsIn(discovery).length > 0;
  const gives = passes.some(({ reasons, failures }) => reasons ?? failures);
  if (passes.length < 2 || (!cites && !gives)) return new Map();
  return new Map(
    Object.entries(agreementOf(passes)).map(([name, { alpha, units: n }]) => {
      const id = `selection.${slug(name)}.agreement`;
      return [name, alpha === undefined ? nothing(id) : { id, value: alpha, n, from }];
    }),
  );
}

/** Trajectories that are shown of those that are put down to faults, and of a selected capability as examples. */
const SHOWN_FAULTS = 8;
const EXAMPLES = 3;

interface ReadSelection {
  selection: Selection;
  discovery: Discovery;
  passes: LabelPass[];
  /** The labeled rollouts. */
  labeled: Labeled;
  /** By selected capability, keys of the first of its trajectories. */
  examples: ReadonlyMap<string, string[]>;
  /** Of the candidates, where the analyst cites or gives reasons. */
  evidence: ReportedEvidence[];
  faults: ReportedFaults | undefined;
}

interface Sources {
  store: ArtifactStore;
  result: SelectionResult;
  /** The batch that was labeled. */
  rollouts: ArtifactRef;
  /** What it holds, where that is at hand. */
  records?: Rollouts;
}

export async function readSelection({ store, result, rollouts, records }: Sources): Promise<ReadSelection> {
  const selection = await readJson(store, result.selection, selectionSchema);
  const discovery = await readJson(store, result.candidates, discoverySchema);
  const passes = await Promise.all(result.labels.map((ref) => readJson(store, ref, labelPassSchema)));
  const examples = new Map(result.selected.map(({ candidate }) => [candidate.name, examplesOf(candidate, selection)]));
  const readings = readingsOf(passes);
  const lacking = new Map(
    selection.capabilities.flatMap(({ name, selected, evidence }) => {
      const reasons = selected ? evidence.flatMap((id) => lackingOf(id, readings.get(name)?.get(id)) ?? []) : [];
      return reasons.length > 0 ? [[name, reasons] as const] : [];
    }),
  );
  const faulty = faultyTrajectories(passes);
  const quoted = [...citationsIn(discovery), ...[...lacking.values()].flat(), ...faulty.slice(0, SHOWN_FAULTS)];
  const keys = new Set([...quoted.map(({ rollout }) => rollout), ...[...examples.values()].flat()]);
  const labeled = await labeledOf(records ?? readRollouts({ store, ref: rollouts }), keys);
  const evidence = discovery.candidates.flatMap(({ name, citations = [] }): ReportedEvidence[] => {
    const reasons = lacking.get(name);
    if (citations.length === 0 && !reasons) return [];
    const cited = citations.map((citation) => citationOf(citation, labeled));
    return [
      { capability: name, citations: cited, lacking: reasons?.map((one) => ({ ...one, ...citationOf(one, labeled) })) },
    ];
  });
  const votes = { passes: result.labels, faulty, labeled };
  return { selection, discovery, passes, labeled, examples, evidence, faults: faultsOf(discovery.faults, votes) };
}

const citationsIn = ({ candidates, faults }: Discovery) =>
  [...candidates, ...faults].flatMap(({ citations = [] }) => citations);

function examplesOf({ name, examples }: Candidate, { capabilities }: Selection): string[] {
  const evidence = capabilities.find((one) => one.name === name)?.evidence ?? [];
  return (evidence.length > 0 ? evidence : examples).slice(0, EXAMPLES);
}

/** What discovery found, and what the passes put down to it. */
function faultsOf(
  found: Discovery['faults'],
  { passes, faulty, labeled }: { passes: ArtifactRef[]; faulty: readonly FaultVotes[]; labeled: Labeled },
): ReportedFaults | undefined {
  if (found.length === 0 && faulty.length === 0) return undefined;
  const count = (of: FaultVotes['of']): Figure => {
    const { length } = faulty.filter((one) => one.of === of);
    return countFigure(`selection.faults.${of}`, length, passes, labeled.failed);
  };
  const examples = faulty.slice(0, SHOWN_FAULTS).map((one) => ({ ...one, ...trajectoryOf(one.rollout, labeled) }));
  return {
    found: found.map((fault) => ({ ...fault, citations: fault.citations.map((one) => citationOf(one, labeled)) })),
    trajectories: passes.length > 0 ? { environment: count('environment'), user: count('user'), examples } : undefined,
  };
}

type Lacking = Omit<
  NonNullable<ReportedEvidence['lacking']>[number],
  Exclude<keyof ReportedCitation, 'rollout' | 'message' | 'says'>
>;

/** Of a failed trajectory: how many passes label it LACKING, and why. Undefined where no pass gives a reason. */
function lackingOf(rollout: string, readings: readonly Reading[] = []): Lacking | undefined {
  const { lacking, message, citing } = lackingIn(readings);
  const says = lacking.find((one) => one.reason !== undefined && one.message === message)?.reason;
  return says === undefined
    ? undefined
    : { rollout, message, says, lacking: lacking.length, passes: readings.length, citing };
}

type FaultVotes = Pick<
  NonNullable<ReportedFaults['trajectories']>['examples'][number],
  'rollout' | 'of' | 'reason' | 'votes' | 'passes'
>;

/** Failed trajectories that the passes put down to the environment or the user more often than to the agent, sorted as text. */
function faultyTrajectories(passes: readonly LabelPass[]): FaultVotes[] {
  const keys = new Set(passes.flatMap(({ failures = {} }) => Object.keys(failures)));
  return [...keys].sort().flatMap((rollout): FaultVotes[] => {
    const origins = passes.flatMap(({ failures }) => failures?.[rollout] ?? []);
    const begins = beginningOf(origins);
    if (!begins || begins.of === 'agent') return [];
    const { of, reason, blaming } = begins;
    return [{ rollout, of, reason, votes: blaming, passes: origins.length }];
  });
}

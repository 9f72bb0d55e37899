/** The selected capabilities in the report: versions of their environments, calibration as it was decided, training, validation with intervals. */
import type { ArtifactStore } from '../../artifacts/store';
import { decisionText } from '../../domain/approval';
import type { ArtifactRef } from '../../domain/artifacts';
import { type Composite, partNames } from '../../domain/capability';
import { type TaskMeans, together } from '../../domain/paired-statistics';
import type { Figure } from '../../domain/figure';
import { policyNames, sumName } from '../../domain/policies';
import type { ReportDraft } from '../model';
import type {
  BandFigures,
  CalibrationFigures,
  CapabilityDraft,
  ReportedCandidate,
  ReportedCapability,
  ReportedEpisode,
  ReportedRound,
  ReportedVersion,
} from '../capability-model';
import type { CampaignRecord, CapabilityResult } from '../../domain/results';
import type { RolloutSummary, ScoredRollout } from '../../domain/rollout';
import { acceptedWithHints, type Measures, type SynthesisRound } from '../../domain/calibration';
import { readRollouts, readTaskMeans } from '../../rollout/read';
import { calibrationsOf } from '../adapters';
import { byBranch, differenceFigure, type Level, nothing, plainFigure, rateFigure, slug } from './figures';
import { reportedTraining } from './training';
import { diffOf, episodeOf, outcomeOf } from './quotes';
import { calibrationBatches } from './rollout-counts';

export async function capabilitiesOf(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  candidates: ReportedCandidate[];
  level: Level;
}): Promise<Pick<ReportDraft, 'capabilities' | 'bands'>> {
  const { store, record, candidates, level } = o;
  const { selection, campaign } = record;
  if (!selection) return {};
  const capabilities: CapabilityDraft[] = [];
  for (const { candidate } of selection.selected) {
    const reported = candidates.find(({ name }) => name === candidate.name);
    if (!reported) throw new Error(`capability ${candidate.name} is selected but not in the selection`);
    const result = record.capabilities?.find(({ name }) => name === candidate.name);
    capabilities.push({
      ...reported,
      // As it was approved.
      definition: candidate.definition,
      ...(result && (await reportedResult({ store, result, level, record }))),
    });
  }
  if (selection.composite) {
    const result = record.capabilities?.find(({ name }) => name === selection.composite?.candidate.name);
    capabilities.push({
      ...compositeCandidate(selection.composite),
      ...(result && (await reportedResult({ store, result, level, record }))),
    });
  }
  return { capabilities, bands: campaign.calibration };
}

/** What no pass labels or votes for. */
function compositeCandidate({ candidate }: Composite): ReportedCandidate & Pick<ReportedCapability, 'parts' | 'mixed'> {
  const { name, definition, parts, mixed } = candidate;
  const id = `selection.${slug(name)}`;
  return {
    name,
    definition,
    votes: 0,
    passes: 0,
    coverage: nothing(`${id}.coverage`),
    delta: nothing(`${id}.delta`),
    selected: true,
    ...(parts && { parts }),
    ...(mixed && { mixed }),
  };
}

async function reportedResult(o: {
  store: ArtifactStore;
  result: CapabilityResult;
  level: Level;
  record: CampaignRecord;
}): Promise<Omit<CapabilityDraft, keyof ReportedCandidate>> {
  const { store, result, level, record } = o;
  const { campaign } = record;
  const id = `capabilities.${slug(result.name)}`;
  const rounds: ReportedRound[] = [];
  for (const one of result.rounds) {
    const previous = result.rounds[rounds.length - 1]?.module;
    rounds.push(await reportedRound({ store, id, round: one, ...(previous && { previous }) }));
  }
  const kept = rounds.flatMap(calibrationsOf).at(-1);
  const episodes = await episodesOf(store, result.rounds);
  const { trained, parts } = result;
  // It trained on the last round's version.
  const hints = acceptedWithHints(result.rounds.at(-1) ?? {}) ? campaign.training.hintShare : 0;
  const adapter = trained?.best.policy.adapters[0]?.ref;
  return {
    status: result.status,
    workflowId: result.workflowId,
    // Without the pairs of which a part came to no adapter.
    ...(parts && { parts }),
    ...(result.reason !== undefined && { reason: result.reason }),
    ...(rounds.length > 0 && { rounds }),
    ...(kept && { calibration: kept }),
    ...(episodes.length > 0 && { episodes }),
    ...(trained && {
      training: await reportedTraining({ store, id, work: trained, level, hints }),
      ...(await judged({ store, record, level, id, name: result.name, parts, trained })),
    }),
    ...(adapter && { adapter }),
  };
}

async function reportedRound(o: {
  store: ArtifactStore;
  /** Of the capability. */
  id: string;
  round: SynthesisRound;
  /** The module of the round before. */
  previous?: ArtifactRef;
}): Promise<ReportedRound> {
  const { store, id, round: one, previous } = o;
  const { round, module, selfTest, aided = [], decision } = one;
  const at = `${id}.calibration.round-${round}`;
  const calibration = calibrationFigures({ id: at, round: one });
  const withAids = aided.flatMap((each) => calibrationFigures({ id: `${at}-hints`, round: { round, ...each } }) ?? []);
  return {
    round,
    selfTest,
    ...(calibration && { calibration }),
    ...(withAids.length > 0 && { aided: withAids }),
    version: await versionOf({ store, module, ...(previous && { previous }) }),
    ...(decision && { decision: decisionText(decision) }),
  };
}

async function judged(o: Judged): Promise<Pick<CapabilityDraft, 'validation' | 'onTarget'>> {
  const validated = await validation(o);
  return { validation: validated, onTarget: await onTarget(o, validated.target.difference) };
}

interface Judged {
  store: ArtifactStore;
  /** Of the capability. */
  id: string;
  name: string;
  parts: CapabilityResult['parts'];
  trained: NonNullable<CapabilityResult['trained']>;
  record: CampaignRecord;
  level: Level;
}

async function validation(o: {
  store: ArtifactStore;
  id: string;
  trained: NonNullable<CapabilityResult['trained']>;
  level: Level;
}): Promise<NonNullable<ReportedCapability['validation']>> {
  const { store, id, trained, level } = o;
  const compare = (where: string, before: TaskMeans, after: TaskMeans) => {
    const at = `${id}.validation.${where}`;
    return {
      before: rateFigure({ id: `${at}.before`, means: before, level }),
      after: rateFigure({ id: `${at}.after`, means: after, level }),
      difference: differenceFigure({ id: `${at}.difference`, treatment: after, control: before, level }),
    };
  };
  const both = ({ before, after }: { before: RolloutSummary; after: RolloutSummary }) =>
    Promise.all([readTaskMeans(store, before.ref), readTaskMeans(store, after.ref)]);
  const seeds = await both(trained.synthesized);
  const branches = byBranch(...seeds).map(({ branch, parts: [before, after] }) => ({
    branch,
    ...compare(`synthesized.${branch}`, before!, after!),
  }));
  const target = compare('target', ...(await both(trained.target)));
  return {
    synthesized: compare('synthesized', ...seeds),
    ...(branches.length > 0 && { branches }),
    target,
  };
}

/** The batches of the target's tasks on which both it and what its training started from were tried: base, or the sum of a composite's parts. */
async function onTarget(
  { store, id, name, parts, trained, record, level }: Judged,
  heldOut: Figure | undefined,
): Promise<NonNullable<ReportedCapability['onTarget']>> {
  const inOrder = (record.capabilities ?? []).map((one) => one.name);
  const control = parts ? sumName(inOrder.filter((one) => partNames({ parts }).includes(one))) : policyNames.base;
  const matrix = new Map(record.router?.outcomes.map(({ option, rollouts }) => [option, rollouts]));
  const test = new Map(record.evaluation?.policies.map((policy) => [policy.name, policy.rollouts]));
  const { best, target } = trained;
  const batches = [
    { of: 'held_out', before: target.before, after: target.after },
    { of: 'router', before: matrix.get(control), after: matrix.get(name) },
    { of: 'test', before: test.get(control), after: test.get(name) },
  ] as const;
  const reported: NonNullable<ReportedCapability['onTarget']>['batches'] = [];
  const judging: { treatment: TaskMeans; control: TaskMeans }[] = [];
  for (const { of, before, after } of batches) {
    if (!before || !after) continue;
    const pair = { treatment: await readTaskMeans(store, after.ref), control: await readTaskMeans(store, before.ref) };
    const chose = best.heldOut.ref.sha256 === after.ref.sha256;
    const figure = of === 'held_out' ? heldOut : undefined;
    const difference = figure ?? differenceFigure({ id: `${id}.on_target.${of}`, ...pair, level });
    reported.push({ of, difference, ...(chose && { chose }) });
    if (!chose) judging.push(pair);
  }
  const from = judging.flatMap((pair) => [...pair.treatment.from, ...pair.control.from]);
  const all = judging.length > 0 && differenceFigure({ id: `${id}.on_target`, ...together(judging), from, level });
  return { batches: reported, ...(all && { all }) };
}

type Interval = Measures['intervals']['meanReward'];

function calibrationFigures(o: {
  /** Begins the ids of its figures. */
  id: string;
  round: Pick<SynthesisRound, 'round' | 'calibration' | 'calibrationRollouts'> & { hints?: number };
}): CalibrationFigures | undefined {
  const { id } = o;
  const { round, hints, calibration: report, calibrationRollouts: rollouts } = o.round;
  if (!report || !rollouts) return undefined;
  const { accepted, verdict, reasons, passAt, passAtIntervals, branches = {}, judged } = report;
  const figure = (o: { id: string; value: number; n: number; unit?: Figure['unit']; interval?: Interval }): Figure => {
    const { interval, ...plain } = o;
    return {
      ...plainFigure({ unit: 'fraction', ...plain, from: [rollouts.ref] }),
      ...(interval && { interval: { ...interval, method: 'over seeds' } }),
    };
  };
  const figuresOf = (prefix: string, { seeds: n, intervals, ...of }: Measures): BandFigures => ({
    meanReward: figure({
      id: `${prefix}.mean_reward`,
      value: of.meanReward,
      n,
      unit: 'reward',
      interval: intervals.meanReward,
    }),
    successRate: figure({
      id: `${prefix}.success_rate`,
      value: of.successRate,
      n,
      interval: intervals.successRate,
    }),
    allSuccess: figure({ id: `${prefix}.all_success`, value: of.allSuccess, n, interval: intervals.allSuccess }),
    allZero: figure({ id: `${prefix}.all_zero`, value: of.allZero, n, interval: intervals.allZero }),
    constant: figure({ id: `${prefix}.constant`, value: of.constant, n, interval: intervals.constant }),
    informative: figure({ id: `${prefix}.informative`, value: of.informative, n, interval: intervals.informative }),
    rewardStd: figure({ id: `${prefix}.reward_std`, value: of.rewardStd, n, unit: 'reward' }),
  });
  const named = Object.entries(branches);
  return {
    round,
    ...(hints !== undefined && { hints }),
    accepted,
    verdict,
    reasons,
    ...figuresOf(id, report),
    passAt: Object.fromEntries(
      Object.entries(passAt).map(([k, value]) => {
        const interval = passAtIntervals[k];
        return [k, figure({ id: `${id}.pass_at_${k}`, value, n: report.seeds, ...(interval && { interval }) })];
      }),
    ),
    ...(named.length > 0 && {
      branches: named.map(([branch, measures]) => ({ branch, ...figuresOf(`${id}.branch.${branch}`, measures) })),
    }),
    ...(judged && { judged: { text: judged.text, ...figuresOf(`${id}.judged`, judged.measures) } }),
  };
}

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
async function episodesOf(store: ArtifactStore, rounds: readonly SynthesisRound[]): Promise<ReportedEpisode[]> {
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

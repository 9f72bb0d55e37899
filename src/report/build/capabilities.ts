/** The selected capabilities in the report: calibration of each round, training, and validation with intervals. */
import { decisionText } from '../../domain/approval';
import type { Figure } from '../../domain/artifacts';
import type { Measures, SynthesisRound } from '../../domain/calibration';
import { type TaskMeans, together } from '../../domain/statistics';
import { policyNames } from '../../domain/policies';
import type { CampaignRecord, CapabilityResult } from '../../domain/results';
import type {
  BandFigures,
  CalibrationFigures,
  CapabilityDraft,
  ReportedCandidate,
  ReportedRound,
} from '../capability-model';
import type { ReportDraft } from '../model';
import type { Evidence } from './evidence';
import { branchesOf, differenceFigure, nothing, ofBranch, rateFigure, slug } from './figures';
import { reportedTraining } from './training';

interface Sources {
  record: CampaignRecord;
  evidence: Evidence;
}

export function capabilitiesOf(
  o: Sources & { candidates: readonly ReportedCandidate[] },
): Pick<ReportDraft, 'capabilities' | 'bands'> {
  const { record, candidates } = o;
  const { selection, campaign, capabilities: results = [] } = record;
  if (!selection) return {};
  const capabilities: CapabilityDraft[] = [];
  for (const { candidate: approved } of selection.selected) {
    const { name, definition } = approved;
    const candidate = candidates.find((one) => one.name === name);
    if (!candidate) throw new Error(`capability ${name} is selected but not in the selection`);
    const result = results.find((one) => one.name === name);
    capabilities.push({ ...candidate, definition, ...(result && reportedResult(o, result)) });
  }
  return { capabilities, bands: campaign.calibration };
}

/** What no pass labels, or votes for. */
export function unlabeled(
  { name, definition }: { name: string; definition: string },
  passes: number,
): Omit<ReportedCandidate, 'selected'> {
  const [coverage, delta] = ['coverage', 'delta'].map((what) => nothing(`selection.${slug(name)}.${what}`)) as [
    Figure,
    Figure,
  ];
  return { name, definition, votes: 0, passes, coverage, delta };
}

function reportedResult(o: Sources, result: CapabilityResult): Omit<CapabilityDraft, keyof ReportedCandidate> {
  const { name, status, workflowId, reason, best, validation } = result;
  const id = `capabilities.${slug(name)}`;
  const rounds = result.rounds.map((round) => reportedRound(id, round));
  return {
    status,
    workflowId,
    reason,
    rounds: rounds.length > 0 ? rounds : undefined,
    calibration: rounds.findLast((round) => round.calibration)?.calibration,
    training: reportedTraining({ ...o, id, child: result }),
    ...(validation && validated(o, result, validation)),
    adapter: best?.policy.adapters[0]?.ref,
  };
}

function reportedRound(of: string, given: SynthesisRound): ReportedRound {
  const { round, module, selfTest, decision } = given;
  const id = `${of}.calibration.round-${round}`;
  return {
    round,
    selfTest,
    calibration: calibrationFigures(id, given),
    module,
    decision: decision && decisionText(decision),
  };
}

const measureUnits: Record<keyof BandFigures, Figure['unit']> = {
  meanReward: 'reward',
  successRate: 'fraction',
  allSuccess: 'fraction',
  allZero: 'fraction',
  constant: 'fraction',
  informative: 'fraction',
  rewardStd: 'reward',
};

function calibrationFigures(
  id: string,
  round: Pick<SynthesisRound, 'round' | 'calibration' | 'calibrationRollouts'>,
): CalibrationFigures | undefined {
  const { calibration, calibrationRollouts } = round;
  if (!calibration || !calibrationRollouts) return undefined;
  const { accepted, verdict, reasons, passAt, passAtIntervals, branches, judged } = calibration;
  const from = [calibrationRollouts.ref];
  type Interval = Measures['intervals']['meanReward'] | undefined;
  const overSeeds = (interval: Interval) => interval && { ...interval, method: 'over seeds' };
  const figuresOf = (prefix: string, measures: Measures): BandFigures => {
    const intervals: Partial<Record<keyof BandFigures, Interval>> = measures.intervals;
    const figures = Object.entries(measureUnits).map(([name, unit]) => {
      const measure = name as keyof BandFigures;
      const at = `${prefix}.${name.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`)}`;
      const interval = overSeeds(intervals[measure]);
      return [name, { id: at, value: measures[measure], n: measures.seeds, unit, interval, from }];
    });
    return Object.fromEntries(figures) as BandFigures;
  };
  const passed = Object.entries(passAt).map(([k, value]): [string, Figure] => {
    const interval = overSeeds(passAtIntervals[k]);
    return [k, { id: `${id}.pass_at_${k}`, value, n: calibration.seeds, unit: 'fraction', interval, from }];
  });
  return {
    round: round.round,
    ...{ accepted, verdict, reasons },
    ...figuresOf(id, calibration),
    passAt: Object.fromEntries(passed),
    branches:
      branches &&
      Object.entries(branches).map(([branch, measures]) => ({
        branch,
        ...figuresOf(`${id}.branch.${branch}`, measures),
      })),
    judged: judged && { text: judged.text, ...figuresOf(`${id}.judged`, judged.measures) },
  };
}

/** Compares the adapter with the base on held-out seeds of its own environment and on all tasks of the target that it was tried on. */
function validated(
  { record, evidence }: Sources,
  { name, work }: CapabilityResult,
  { synthesized, target }: NonNullable<CapabilityResult['validation']>,
): Pick<CapabilityDraft, 'validation' | 'onTarget'> {
  const { level, means, test } = evidence;
  const id = `capabilities.${slug(name)}`;
  const compared = (where: string, control: TaskMeans, treatment: TaskMeans) => {
    const at = `${id}.validation.${where}`;
    return {
      before: rateFigure(`${at}.before`, control, level),
      after: rateFigure(`${at}.after`, treatment, level),
      difference: differenceFigure({ id: `${at}.difference`, treatment, control, level }),
    };
  };
  const seeds = [means(synthesized.before.ref), means(synthesized.after.ref)] as const;
  const onTasks = [means(target.before.ref), means(target.after.ref)] as const;
  const validation = {
    chose: work && work.iterations.length > 1 ? (true as const) : undefined,
    synthesized: compared('synthesized', ...seeds),
    branches: branchesOf(...seeds).map((branch) => {
      const [before, after] = seeds.map((side) => ofBranch(side, branch)) as [TaskMeans, TaskMeans];
      return { branch, ...compared(`synthesized.${branch}`, before, after) };
    }),
    target: compared('target', ...onTasks),
  };

  const { base } = policyNames;
  const matrix = new Map(record.router?.policies.map(({ name: option, rollouts }) => [option, means(rollouts.ref)]));
  const tried = (
    [
      ['held_out', ...onTasks],
      ['router', matrix.get(base), matrix.get(name)],
      ['test', test.get(base), test.get(name)],
    ] as const
  ).flatMap(([of, control, treatment]) => {
    if (!control || !treatment) return [];
    const difference =
      of === 'held_out'
        ? validation.target.difference
        : differenceFigure({ id: `${id}.on_target.${of}`, treatment, control, level });
    return [{ batch: { of, difference }, treatment, control }];
  });
  const sides = together(tried);
  const from = tried.flatMap(({ treatment, control }) => [...treatment.from, ...control.from]);
  const all = differenceFigure({
    id: `${id}.on_target`,
    treatment: { ...sides.treatment, from },
    control: { ...sides.control, from: [] },
    level,
  });
  return {
    validation: { ...validation, branches: validation.branches.length > 0 ? validation.branches : undefined },
    onTarget: { batches: tried.map(({ batch }) => batch), all },
  };
}

/** The selected capabilities in the report: calibration rounds, training, validation with intervals. */
import type { ArtifactStore } from '../../artifacts/store';
import type { CampaignRecord, CapabilityResult, RolloutSummary, SynthesisRound } from '../../domain/results';
import type { CalibrationFigures, ReportDraft, ReportedCandidate, ReportedCapability } from '../../domain/report';
import { taskMeans } from './evidence';
import { differenceFigure, plainFigure, rateFigure, slug, type Level } from './figures';
import { reportedTraining } from './training';

export async function capabilitiesOf(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  candidates: ReportedCandidate[];
  level: Level;
}): Promise<Pick<ReportDraft, 'capabilities' | 'bands'>> {
  const { store, record, candidates, level } = o;
  const { selection, campaign } = record;
  if (!selection) return {};
  const capabilities: ReportedCapability[] = [];
  for (const { candidate } of selection.selected) {
    const reported = candidates.find(({ name }) => name === candidate.name);
    if (!reported) throw new Error(`capability ${candidate.name} is selected but not in the selection`);
    const result = record.capabilities?.find(({ name }) => name === candidate.name);
    capabilities.push({ ...reported, ...(result && (await reportedResult({ store, result, level }))) });
  }
  return { capabilities, bands: campaign.calibration };
}

async function reportedResult(o: {
  store: ArtifactStore;
  result: CapabilityResult;
  level: Level;
}): Promise<Omit<ReportedCapability, keyof ReportedCandidate>> {
  const { store, result, level } = o;
  const id = `capabilities.${slug(result.name)}`;
  const rounds = result.rounds.flatMap((round) => calibrationFigures(id, round) ?? []);
  // The accepted round is the last one; without one, the last attempt is what is kept.
  const kept = rounds.at(-1);
  const selfTest = result.rounds.at(-1)?.selfTest;
  const { trained } = result;
  return {
    status: result.status,
    workflowId: result.workflowId,
    ...(result.reason !== undefined && { reason: result.reason }),
    ...(kept && { calibration: kept, rounds }),
    ...(selfTest && { selfTest }),
    ...(trained && {
      training: await reportedTraining({ store, id, trained, level }),
      validation: await validation({ store, id, trained, level }),
      adapter: trained.best.adapter,
    }),
  };
}

async function validation(o: {
  store: ArtifactStore;
  id: string;
  trained: NonNullable<CapabilityResult['trained']>;
  level: Level;
}): Promise<NonNullable<ReportedCapability['validation']>> {
  const { store, id, trained, level } = o;
  const compare = async (
    where: 'synthesized' | 'target',
    batches: { before: RolloutSummary; after: RolloutSummary },
  ) => {
    const before = await taskMeans(store, [batches.before.ref]);
    const after = await taskMeans(store, [batches.after.ref]);
    return {
      before: rateFigure({ id: `${id}.validation.${where}.before`, means: before, level }),
      after: rateFigure({ id: `${id}.validation.${where}.after`, means: after, level }),
      difference: differenceFigure({
        id: `${id}.validation.${where}.difference`,
        treatment: after,
        control: before,
        level,
      }),
    };
  };
  const synthesized = await compare('synthesized', trained.synthesized);
  const target = await compare('target', trained.target);
  // An adapter helps if what it was trained for shows on held-out tasks of the target, beyond chance.
  return { synthesized, target, helps: (target.difference.interval?.low ?? 0) > 0 };
}

function calibrationFigures(id: string, round: SynthesisRound): CalibrationFigures | undefined {
  const { calibration: report, calibrationRollouts: rollouts } = round;
  if (!report || !rollouts) return undefined;
  const from = [rollouts.ref];
  const prefix = `${id}.calibration.round-${round.round}`;
  const figure = (name: string, value: number, n: number, unit: 'fraction' | 'reward') => {
    const { passAt, ...others } = report.intervals;
    const interval = (others as Record<string, { low: number; high: number }>)[name] ?? passAt[name];
    return {
      ...plainFigure({ id: `${prefix}.${figureNames[name] ?? `pass_at_${name}`}`, value, n, unit, from }),
      ...(interval && { interval: { ...interval, level: 0.95, method: 'over seeds' } }),
    };
  };
  const { seeds } = report;
  return {
    round: round.round,
    accepted: report.accepted,
    verdict: report.verdict,
    reasons: report.reasons,
    meanReward: figure('meanReward', report.meanReward, seeds, 'reward'),
    successRate: figure('successRate', report.successRate, seeds, 'fraction'),
    allSuccess: figure('allSuccess', report.allSuccess, seeds, 'fraction'),
    allZero: figure('allZero', report.allZero, seeds, 'fraction'),
    constant: figure('constant', report.constant, seeds, 'fraction'),
    informative: figure('informative', report.informative, seeds, 'fraction'),
    rewardStd: figure('rewardStd', report.rewardStd, seeds, 'reward'),
    passAt: Object.fromEntries(
      Object.entries(report.passAt).map(([k, value]) => [k, figure(k, value, seeds, 'fraction')]),
    ),
  };
}

const figureNames: Record<string, string> = {
  meanReward: 'mean_reward',
  successRate: 'success_rate',
  allSuccess: 'all_success',
  allZero: 'all_zero',
  constant: 'constant',
  informative: 'informative',
  rewardStd: 'reward_std',
};

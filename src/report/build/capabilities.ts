/** The selected capabilities in the report: calibration rounds, training, validation with intervals. */
import type { ArtifactStore } from '../../artifacts/store';
import { calibrate, type CalibrationReport } from '../../domain/calibration';
import type { CalibrationBands } from '../../domain/campaign';
import type { ReportDraft } from '../../domain/report';
import type { ReportedCandidate, ReportedCapability, ReportedRound } from '../../domain/reported-capability';
import type { CalibrationFigures } from '../../domain/reported-training';
import type { CampaignRecord, CapabilityResult, RolloutSummary, SynthesisRound } from '../../domain/results';
import { outcomes } from '../../rollout/read';
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
    capabilities.push({
      ...reported,
      ...(result && (await reportedResult({ store, result, level, bands: campaign.calibration }))),
    });
  }
  return { capabilities, bands: campaign.calibration };
}

async function reportedResult(o: {
  store: ArtifactStore;
  result: CapabilityResult;
  level: Level;
  bands: CalibrationBands;
}): Promise<Omit<ReportedCapability, keyof ReportedCandidate>> {
  const { store, result, level, bands } = o;
  const id = `capabilities.${slug(result.name)}`;
  const rounds: ReportedRound[] = [];
  for (const one of result.rounds) {
    const { round, selfTest } = one;
    const calibration = await calibrationFigures({ store, id, round: one, bands, level });
    rounds.push({ round, selfTest, ...(calibration && { calibration }) });
  }
  const kept = rounds.findLast(({ calibration }) => calibration)?.calibration;
  const { trained } = result;
  const adapter = trained?.best.policy.adapters[0]?.ref;
  return {
    status: result.status,
    workflowId: result.workflowId,
    ...(result.reason !== undefined && { reason: result.reason }),
    ...(rounds.length > 0 && { rounds }),
    ...(kept && { calibration: kept }),
    ...(trained && {
      training: await reportedTraining({ store, id, work: trained, level }),
      validation: await validation({ store, id, trained, level }),
    }),
    ...(adapter && { adapter }),
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
    const before = await taskMeans(store, batches.before.ref);
    const after = await taskMeans(store, batches.after.ref);
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

/** The rewards of a round held against the bands once more. */
async function calibrationFigures(o: {
  store: ArtifactStore;
  id: string;
  round: SynthesisRound;
  bands: CalibrationBands;
  level: Level;
}): Promise<CalibrationFigures | undefined> {
  const { store, id, bands, level } = o;
  const { round, calibration, calibrationRollouts: rollouts } = o.round;
  if (!calibration || !rollouts) return undefined;
  const groups = [...(await outcomes({ store, ref: rollouts.ref })).values()];
  const report = calibrate({ groups, bands, confidence: level.confidence });
  const { seeds, intervals } = report;
  const figure = (name: string, value: number, interval?: CalibrationReport['intervals']['meanReward']) => ({
    ...plainFigure({
      id: `${id}.calibration.round-${round}.${name}`,
      value,
      n: seeds,
      unit: /^reward|reward$/.test(name) ? 'reward' : 'fraction',
      from: [rollouts.ref],
    }),
    ...(interval && { interval: { ...interval, method: 'over seeds' } }),
  });
  return {
    round,
    accepted: report.accepted,
    verdict: report.verdict,
    reasons: report.reasons,
    meanReward: figure('mean_reward', report.meanReward, intervals.meanReward),
    successRate: figure('success_rate', report.successRate, intervals.successRate),
    allSuccess: figure('all_success', report.allSuccess, intervals.allSuccess),
    allZero: figure('all_zero', report.allZero, intervals.allZero),
    constant: figure('constant', report.constant, intervals.constant),
    informative: figure('informative', report.informative, intervals.informative),
    rewardStd: figure('reward_std', report.rewardStd),
    passAt: Object.fromEntries(
      Object.entries(report.passAt).map(([k, value]) => [k, figure(`pass_at_${k}`, value, intervals.passAt[k])]),
    ),
  };
}

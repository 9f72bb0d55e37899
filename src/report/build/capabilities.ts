/** The selected capabilities in the report: calibration rounds, training, validation with intervals. */
import type { ArtifactStore } from '../../artifacts/store';
import type { CalibrationBands } from '../../domain/campaign';
import type { ReportDraft } from '../../domain/report';
import type { ReportedCandidate, ReportedCapability, ReportedRound } from '../../domain/reported-capability';
import type { CampaignRecord, CapabilityResult, RolloutSummary } from '../../domain/results';
import { gamed } from '../gamed';
import { calibrationFigures } from './calibration';
import { byBranch, taskMeans, type TaskMeans } from './evidence';
import { differenceFigure, rateFigure, slug, type Level } from './figures';
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
  const compare = (where: string, before: TaskMeans, after: TaskMeans) => {
    const at = `${id}.validation.${where}`;
    return {
      before: rateFigure({ id: `${at}.before`, means: before, level }),
      after: rateFigure({ id: `${at}.after`, means: after, level }),
      difference: differenceFigure({ id: `${at}.difference`, treatment: after, control: before, level }),
    };
  };
  const both = ({ before, after }: { before: RolloutSummary; after: RolloutSummary }) =>
    Promise.all([taskMeans(store, before.ref), taskMeans(store, after.ref)]);
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
    verdict: gamed(branches) ? 'gamed' : (target.difference.interval?.low ?? 0) > 0 ? 'helps' : 'no_gain',
  };
}

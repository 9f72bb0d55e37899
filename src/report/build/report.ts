/**
 * Builds the report of a campaign from its record: figures from the artifacts; of trainings, of stages' seconds and of what language models cost,
 * what the activities returned. Invariant: a rollout that batches share counts once, for the first purpose in the order of `batchesByPurpose`, so
 * that the purposes add up to the total.
 */
import { digest } from '../../artifacts/hash';
import type { ArtifactStore } from '../../artifacts/store';
import type { Task } from '../../domain/environment';
import { payingRoles, type Spent, sumOf } from '../../domain/endpoints';
import type { PublishedArm } from '../../domain/presets';
import type { ReportDraft } from '../model';
import type { CampaignRecord, TrainingSummary } from '../../domain/results';
import { type Campaign, type Stage, stages } from '../../domain/campaign';
import { armsOf } from './arms';
import { distinct, groupsOf, type Level, plainFigure, publishedOf, rateFigure, rewardFigure } from './figures';
import { brokenBy, calibrationBatches, type Contents, contentsOf, type Count, countGroups } from './rollout-counts';
import { capabilitiesOf } from './capabilities';
import { routerOf } from './router';
import { selectionOf } from './selection';
import type { ArtifactRef } from '../../domain/artifacts';
import { policyNames } from '../../domain/policies';
import { causesOf, isSuccess, type Purpose, type RolloutSummary, type ScoredRollout } from '../../domain/rollout';
import { readRollouts, readTaskMeans } from '../../rollout/read';
import { episodeOf } from './quotes';
import { median } from '../../domain/statistics';
import { readMetrics } from './training';

export async function buildReport(o: {
  store: ArtifactStore;
  record: CampaignRecord;
  /** Of the target's test split. */
  tasks: readonly Task[];
  /** Of its train split. */
  trainTasks?: readonly Task[];
  /** What others report on the target. */
  published?: readonly PublishedArm[] | undefined;
  leakage?: ReportDraft['leakage'] | undefined;
  /** By step: what language models cost. */
  spent: readonly Spent[];
}): Promise<ReportDraft> {
  const { store, record, tasks, trainTasks = [], published = [], leakage, spent } = o;
  const { campaign, prepared } = record;
  const level = { confidence: campaign.evaluation.confidence, seed: campaign.seed };
  const selection = await selectionOf(store, record);
  const contents = await contentsOf(store, batchesToRead(record));
  const all = totals(record, contents);
  const router = await routerOf({ store, record, level });
  const arms = await armsOf({ store, record, contents, tasks, constant: router.router?.constant, level });
  return {
    campaign: {
      name: campaign.name,
      seed: campaign.seed,
      ...(campaign.trainingSeed !== undefined && { trainingSeed: campaign.trainingSeed }),
      configSha256: digest(campaign),
      baseModel: prepared.base,
      target: prepared.target,
      startedAt: new Date(record.startedAt).toISOString(),
      finishedAt: new Date(record.finishedAt).toISOString(),
      status: record.stoppedAfter ? 'stopped_at_stage' : 'completed',
      stage: record.stoppedAfter ?? stages[stages.length - 1] ?? 'evaluation',
      workflowId: record.workflowId,
    },
    ...baseCheckOf(record),
    ...all,
    cost: { ...all.cost, ...(await secondsPerRollout(store, record)), ...languageModelCost(spent, campaign) },
    ...(await baseOf({ store, ref: record.baseRollouts.ref, tasks: trainTasks, level })),
    ...selection,
    ...(await capabilitiesOf({ store, record, candidates: selection.selection?.candidates ?? [], level })),
    ...router,
    ...arms,
    ...publishedOf(published, arms.groups ?? []),
    ...(leakage && { leakage }),
  };
}

function baseCheckOf({ baseCheck }: CampaignRecord): Pick<ReportDraft, 'baseCheck'> {
  if (!baseCheck) return {};
  const findings = [...baseCheck.problems, ...baseCheck.warnings];
  return findings.length === 0 ? {} : { baseCheck: { findings, from: [baseCheck.rollouts] } };
}

const CONVERSATIONS = 3;
const ID = 'base_rollouts';

async function baseOf(o: {
  store: ArtifactStore;
  ref: ArtifactRef;
  /** Of the target's train split. */
  tasks: readonly Task[];
  level: Level;
}): Promise<Pick<ReportDraft, 'base'>> {
  const { store, ref, tasks, level } = o;
  const means = await readTaskMeans(store, ref);
  const columns = new Map([[policyNames.base, means]]);
  // The last one is all tasks.
  const groups = groupsOf({ columns, tasks, level, id: `${ID}.groups` }).groups?.slice(0, -1);
  return {
    base: {
      successRate: rateFigure({ id: `${ID}.success_rate`, means, level }),
      meanReward: rewardFigure({ id: `${ID}.mean_reward`, means, level }),
      ...(groups && { groups }),
      conversations: (await chosen(store, ref)).map(episodeOf),
    },
  };
}

/** A success, a failure and one that ended otherwise, the first of each; where there are fewer kinds, more of them in turn. */
async function chosen(store: ArtifactStore, ref: ArtifactRef): Promise<ScoredRollout[]> {
  const kinds = new Map<string, ScoredRollout[]>([['success', []]]);
  for await (const rollout of readRollouts({ store, ref })) {
    if (rollout.status !== 'scored' || rollout.messages.length === 0) continue;
    const kind = isSuccess(rollout) ? 'success' : rollout.reward > 0 ? 'in part' : rollout.stopReason;
    const known = kinds.get(kind) ?? [];
    if (known.length < CONVERSATIONS) kinds.set(kind, [...known, rollout]);
  }
  const turns = Array.from({ length: CONVERSATIONS }, (_, n) => [...kinds.values()].flatMap((known) => known[n] ?? []));
  return turns.flat().slice(0, CONVERSATIONS);
}

interface Batches {
  purpose: Purpose;
  batches: { ref: ArtifactRef }[];
  /** Of trainings, whose batches are behind their metrics: as the activities returned it. */
  counted?: Count;
}

export const trainingsOf = ({ capabilities = [], arms = [] }: CampaignRecord): TrainingSummary[] =>
  [...capabilities.map(({ trained }) => trained), ...arms].flatMap((work) => work?.training ?? []);

/** Every batch of the campaign under what it was for. */
export function batchesByPurpose(record: CampaignRecord): Batches[] {
  const { baseRollouts, baseHeldOut, capabilities = [], arms = [], router, evaluation } = record;
  const works = [...capabilities.map(({ trained }) => trained), ...arms];
  const trainings = trainingsOf(record);
  const of = (purpose: Purpose, batches: (RolloutSummary | undefined)[]): Batches => ({
    purpose,
    batches: distinct(batches.filter((batch) => batch !== undefined)),
  });
  const found: Batches[] = [
    of('base_rollouts', [baseRollouts]),
    of(
      'calibration',
      capabilities.flatMap(({ rounds }) => calibrationBatches(rounds)),
    ),
    { purpose: 'training', batches: trainings.map(({ metrics: ref }) => ({ ref })), counted: countOf(trainings) },
    of('held_out', [
      baseHeldOut,
      ...works.flatMap((work) => work?.iterations?.map(({ heldOut }) => heldOut)),
      ...capabilities.flatMap(({ trained: t, parts }) =>
        // Of the base, the target is held out for all of them at once.
        t ? [t.synthesized.before, t.synthesized.after, parts && t.target.before, t.target.after] : [],
      ),
    ]),
    of('outcome_matrix', router?.outcomes.map((o) => o.rollouts) ?? []),
    of('test', evaluation?.policies.map(({ rollouts }) => rollouts) ?? []),
  ];
  return found.filter(({ batches }) => batches.length > 0);
}

/** Without what counts as base rollouts. */
const countOf = (trainings: TrainingSummary[]): Count => {
  const sum = (count: (training: TrainingSummary) => number) => trainings.reduce((total, one) => total + count(one), 0);
  const own = (field: 'rollouts' | 'promptTokens' | 'completionTokens') =>
    sum(({ shared, ...all }) => all[field] - (shared?.[field] ?? 0));
  return {
    scored: own('rollouts'),
    broken: sum(({ brokenRollouts }) => brokenRollouts),
    promptTokens: own('promptTokens'),
    completionTokens: own('completionTokens'),
    causes: [],
  };
};

const refsOf = (batches: { ref: ArtifactRef }[]): ArtifactRef[] => distinct(batches).map(({ ref }) => ref);

/** The batches whose rollouts are counted one by one. */
const batchesToRead = (record: CampaignRecord): { ref: ArtifactRef }[] =>
  batchesByPurpose(record).flatMap(({ batches, counted }) => (counted ? [] : batches));

type Totals = { [Part in 'rollouts' | 'cost']: NonNullable<ReportDraft[Part]> };

export function totals(record: CampaignRecord, contents: Contents): Totals {
  const purposes = batchesByPurpose(record);
  const counts = countGroups(
    contents,
    purposes.map(({ batches, counted }) => (counted ? [] : batches)),
  );
  const all = purposes.map((one, i) => ({ ...one, count: one.counted ?? counts[i]! }));
  const sum = (id: string, over: typeof all, field: 'scored' | 'broken' | 'promptTokens' | 'completionTokens') => {
    const value = over.reduce((total, { count }) => total + count[field], 0);
    const n = over.reduce((total, { count }) => total + count.scored + count.broken, 0);
    const unit = field.endsWith('Tokens') ? 'tokens' : 'count';
    return plainFigure({ id, value, n, unit, from: refsOf(over.flatMap(({ batches }) => batches)) });
  };
  const causes = causesOf(all.flatMap(({ count }) => count.causes));
  const before = (type: string, n: number): number => causes.slice(0, n).filter((one) => one.type === type).length;
  return {
    rollouts: {
      scored: sum('rollouts.scored', all, 'scored'),
      broken: sum('rollouts.broken', all, 'broken'),
      brokenByError: causes.map(({ type: errorType, message, task, count: value }, n) => {
        const having = all.filter(({ count }) => count.causes.some(({ type }) => type === errorType));
        const earlier = before(errorType, n);
        const id = `rollouts.broken_by_error.${errorType.toLowerCase()}${earlier > 0 ? `_${earlier + 1}` : ''}`;
        const from = refsOf(having.flatMap(({ batches }) => brokenBy(contents, batches, errorType)));
        return { errorType, message, task, rollouts: plainFigure({ id, value, n: value, unit: 'count', from }) };
      }),
      byPurpose: all.map((one) => {
        const id = `rollouts.${one.purpose}`;
        return {
          purpose: one.purpose,
          scored: sum(`${id}.scored`, [one], 'scored'),
          broken: sum(`${id}.broken`, [one], 'broken'),
          promptTokens: sum(`${id}.prompt_tokens`, [one], 'promptTokens'),
          completionTokens: sum(`${id}.completion_tokens`, [one], 'completionTokens'),
        };
      }),
    },
    cost: {
      wallSeconds: stages.flatMap((stage) => {
        const seconds = record.stageSeconds[stage];
        return seconds === undefined ? [] : [{ stage, seconds }];
      }),
      rollouts: sum('cost.rollouts', all, 'scored'),
      promptTokens: sum('cost.prompt_tokens', all, 'promptTokens'),
      completionTokens: sum('cost.completion_tokens', all, 'completionTokens'),
    },
  };
}

type SecondsPerRollout = Pick<NonNullable<ReportDraft['cost']>, 'secondsPerRollout'>;

/** Stages that do little else than rollouts without gradient. */
const PLAIN: readonly Stage[] = ['rollouts', 'router', 'evaluation'];

export async function secondsPerRollout(store: ArtifactStore, record: CampaignRecord): Promise<SecondsPerRollout> {
  const rollout = perPlain(record);
  const training = await perTraining(store, record);
  if (rollout === undefined && training === undefined) return {};
  return {
    secondsPerRollout: { ...(rollout !== undefined && { rollout }), ...(training !== undefined && { training }) },
  };
}

function perPlain({ baseRollouts, router, evaluation, stageSeconds }: CampaignRecord): number | undefined {
  const batches = [baseRollouts, ...[router?.outcomes, evaluation?.policies].flatMap(batchesOf)];
  const played = batches.reduce((sum, { scored, broken, reused = 0 }) => sum + scored + broken - reused, 0);
  const seconds = PLAIN.reduce((sum, stage) => sum + (stageSeconds[stage] ?? 0), 0);
  return played > 0 ? seconds / played : undefined;
}

const batchesOf = (parts: readonly { rollouts: RolloutSummary }[] = []): RolloutSummary[] =>
  parts.map(({ rollouts }) => rollouts);

/** The median step over its rollouts; trainings that run side by side share the time. */
async function perTraining(store: ArtifactStore, record: CampaignRecord): Promise<number | undefined> {
  const { training, workers } = record.campaign;
  const steps: number[] = [];
  let trainings = 0;
  for (const one of trainingsOf(record)) {
    const seconds = await stepSeconds(store, one);
    steps.push(...seconds);
    if (seconds.length > 0) trainings += 1;
  }
  if (steps.length === 0) return undefined;
  return median(steps) / (training.groupsPerStep * training.groupSize) / Math.min(workers.gpuSlots, trainings);
}

/** None of a learner that does not time its steps. */
const stepSeconds = async (store: ArtifactStore, { metrics }: TrainingSummary): Promise<number[]> =>
  (await readMetrics(store, metrics)).flatMap(({ rollouts_seconds, update_seconds }) =>
    rollouts_seconds === undefined || update_seconds === undefined ? [] : [rollouts_seconds + update_seconds],
  );

type LanguageModelCost = NonNullable<NonNullable<ReportDraft['cost']>['languageModel']>;

/** Nothing where nothing was asked. */
export function languageModelCost(
  steps: readonly Spent[],
  { budget }: Pick<Campaign, 'budget'>,
): { languageModel?: LanguageModelCost } {
  if (steps.length === 0) return {};
  const roles = payingRoles.flatMap((role) => {
    const own = steps.filter((step) => step.role === role);
    return own.length > 0 ? [{ role, ...sumOf(own) }] : [];
  });
  return { languageModel: { roles, steps: [...steps], total: { step: 'all', ...sumOf(steps) }, budget } };
}

/**
 * The data of a report: the batches of a campaign, each with its purpose, its owner and its content, read once. A training is represented by its metrics
 * and the counts that its activity returned, since its batches are behind the metrics.
 */
import { z } from 'zod';
import type { ArtifactStore } from '../../store/store';
import type { ArtifactRef } from '../../domain/artifacts';
import type { SynthesisRound } from '../../domain/calibration';
import { jsonText } from '../../domain/messages';
import { type Outcome, taskMeans } from '../../domain/outcomes';
import type { TaskMean, TaskMeans } from '../../domain/statistics';
import { policyNames } from '../../domain/policies';
import type { CampaignRecord, TrainingResult } from '../../domain/results';
import { type BrokenCause, causesIn, causesOf, type Purpose, type RolloutSummary } from '../../domain/rollout';
import { readOutcomes } from '../../rollout/read';
import type { Level } from './figures';

interface Counts {
  scored: number;
  broken: number;
  promptTokens: number;
  completionTokens: number;
}

export interface Batch {
  purpose: Purpose;
  ref: ArtifactRef;
  /** The capability or arm that it was made for; absent where it is for several. */
  owner?: string;
  /** Counts of a training, without the campaign's base rollouts that it reused. */
  counted?: Counts;
}

const calibrationBatches = (rounds: readonly SynthesisRound[]): RolloutSummary[] =>
  rounds.flatMap(({ calibrationRollouts }) => calibrationRollouts ?? []);

/** Every batch of the campaign, by purpose. */
export function batchesOf(record: CampaignRecord): Batch[] {
  const { baseRollouts, baseHeldOut, capabilities = [], arms = [], router, evaluation } = record;
  const children = [...capabilities, ...arms];
  const rows = (purpose: Purpose, summaries: readonly (RolloutSummary | undefined)[], owner?: string): Batch[] =>
    summaries.flatMap((summary) => (summary ? [{ purpose, ref: summary.ref, ...(owner && { owner }) }] : []));
  return [
    ...rows('base_rollouts', [baseRollouts]),
    ...capabilities.flatMap(({ name, rounds }) => rows('calibration', calibrationBatches(rounds), name)),
    ...children.flatMap(({ name, work }): Batch[] => {
      if (!work) return [];
      return [{ purpose: 'training', ref: work.training.metrics, owner: name, counted: countsOf(work.training) }];
    }),
    ...rows('held_out', [baseHeldOut]),
    ...children.flatMap(({ name, work }) =>
      rows('held_out', work?.iterations.map(({ heldOut }) => heldOut) ?? [], name),
    ),
    ...capabilities.flatMap(({ name, validation }) => {
      if (!validation) return [];
      const { synthesized, target } = validation;
      // The base on the target is one batch for all capabilities.
      return rows('held_out', [synthesized.before, synthesized.after, target.after], name);
    }),
    ...rows('outcome_matrix', router?.policies.map(({ rollouts }) => rollouts) ?? []),
    ...rows('test', evaluation?.policies.map(({ rollouts }) => rollouts) ?? []),
  ];
}

const countsOf = ({ shared, brokenRollouts, ...all }: TrainingResult): Counts => ({
  scored: all.rollouts - (shared?.rollouts ?? 0),
  broken: brokenRollouts,
  promptTokens: all.promptTokens - (shared?.promptTokens ?? 0),
  completionTokens: all.completionTokens - (shared?.completionTokens ?? 0),
});

/** Each once, in the order given: equal policies share their batches. */
export const refsOf = (batches: readonly { ref: ArtifactRef }[]): ArtifactRef[] => [
  ...new Map(batches.map(({ ref }) => [ref.sha256, ref])).values(),
];

export interface Evidence {
  level: Level;
  outcomes(ref: ArtifactRef): readonly Outcome[];
  means(ref: ArtifactRef): TaskMeans;
  metrics(ref: ArtifactRef): readonly MetricsLine[];
  /** Means on the test tasks by policy; the oracle is last, and present if all options of the router were evaluated. */
  test: ReadonlyMap<string, TaskMeans>;
}

export async function readEvidence(store: ArtifactStore, record: CampaignRecord): Promise<Evidence> {
  const { evaluation, router, campaign, capabilities = [] } = record;
  const batches = new Map<string, { outcomes: readonly Outcome[]; means: TaskMeans }>();
  const metrics = new Map<string, MetricsLine[]>();
  // A capability may have started before the base's held-out batch was rebuilt.
  const starts = capabilities.flatMap(({ validation }) => validation?.target.before ?? []);
  const all: Pick<Batch, 'ref' | 'counted'>[] = [...batchesOf(record), ...starts.map(({ ref }) => ({ ref }))];
  for (const { ref, counted } of all) {
    if (counted) metrics.set(ref.sha256, await readMetrics(store, ref));
    else if (!batches.has(ref.sha256)) {
      const outcomes = await readOutcomes({ store, ref });
      batches.set(ref.sha256, { outcomes, means: taskMeans(outcomes, ref) });
    }
  }
  const means = (ref: ArtifactRef) => batches.get(ref.sha256)!.means;
  const test = new Map(evaluation?.policies.map(({ name, rollouts }) => [name, means(rollouts.ref)]));
  const options = (router?.options ?? [policyNames.base]).map((option) => test.get(option));
  if (options.every((option) => option !== undefined)) test.set(policyNames.ceiling, bestOf(options));
  return {
    level: { confidence: campaign.evaluation.confidence, seed: campaign.seed },
    outcomes: (ref) => batches.get(ref.sha256)!.outcomes,
    means,
    metrics: (ref) => metrics.get(ref.sha256)!,
    test,
  };
}

/** Returns each task's best mean over the options: the oracle, an upper bound of routing. */
function bestOf(options: readonly TaskMeans[]): TaskMeans {
  const best = new Map<string, TaskMean>();
  for (const { tasks } of options)
    for (const [task, own] of tasks) {
      const { success, reward } = best.get(task) ?? own;
      best.set(task, { ...own, success: Math.max(success, own.success), reward: Math.max(reward, own.reward) });
    }
  return {
    tasks: best,
    trials: Math.max(0, ...options.map(({ trials }) => trials)),
    from: options.flatMap(({ from }) => from),
  };
}

/** A line of a learner's metrics.jsonl. */
export const metricsLine = jsonText.pipe(
  z.looseObject({
    step: z.number().int(),
    reward: z.number(),
    loss: z.number().optional(),
    kl: z.number().optional(),
    grad_norm: z.number().optional(),
    b_norm: z.number().optional(),
    rollouts_seconds: z.number().optional(),
    update_seconds: z.number().optional(),
  }),
);
export type MetricsLine = z.output<typeof metricsLine>;

async function readMetrics(store: ArtifactStore, ref: ArtifactRef): Promise<MetricsLine[]> {
  const lines = (await store.read(ref)).toString('utf8').split('\n').filter(Boolean);
  return lines.map((line, n) => {
    const { data, error } = metricsLine.safeParse(line);
    if (data) return data;
    const problem = z.prettifyError(error);
    throw new Error(`${ref.uri}, line ${n + 1}: ${problem}; a learner's metrics have step and reward in every line`);
  });
}

export interface Count extends Counts {
  /** Why rollouts broke, the most frequent causes first. */
  causes: BrokenCause[];
}

/**
 * A count of each group, in the order given. A rollout that several batches hold counts once, in the first group that has it; one that is broken
 * in one batch and scored in another is a scored one.
 */
export function countGroups(
  { outcomes }: Evidence,
  groups: readonly (readonly { ref: ArtifactRef; counted?: Partial<Counts> }[])[],
): Count[] {
  const held = groups.map((batches) => batches.flatMap(({ ref, counted }) => (counted ? [] : outcomes(ref))));
  const scored = new Set(held.flat().flatMap(({ status, key }) => (status === 'scored' ? [key] : [])));
  const known = new Set<string>();
  return groups.map((batches, n) => {
    const count = { scored: 0, broken: 0, promptTokens: 0, completionTokens: 0 };
    for (const { counted = {} } of batches)
      for (const field of Object.keys(count) as (keyof Counts)[]) count[field] += counted[field] ?? 0;
    const causes: BrokenCause[] = [];
    for (const outcome of held[n]!) {
      if (known.has(outcome.key) || (outcome.status === 'broken' && scored.has(outcome.key))) continue;
      known.add(outcome.key);
      count[outcome.status] += 1;
      if (outcome.status === 'broken') causes.push(...causesIn([outcome]));
      else {
        count.promptTokens += outcome.usage.promptTokens;
        count.completionTokens += outcome.usage.completionTokens;
      }
    }
    return { ...count, causes: causesOf(causes) };
  });
}

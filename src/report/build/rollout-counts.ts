/**
 * Rollouts counted over batches, and what was spent to come to each arm. Invariants: a rollout that several batches hold is counted once, in the
 * first group of batches that has it; one that is broken in one batch and scored in another is a scored one; test rollouts are nobody's; what was
 * made for several capabilities (base rollouts, base on held-out tasks, the outcome matrix) is the routed policy's alone.
 */
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import { type BrokenCause, causesIn, causesOf, type RolloutSummary } from '../../domain/rollout';
import type { Outcome } from '../../domain/outcomes';
import type { SynthesisRound } from '../../domain/calibration';
import { readOutcomes } from '../../rollout/read';
import { distinct, nothing, plainFigure } from './figures';
import {
  type ArmResult,
  type CampaignRecord,
  type CapabilityResult,
  type Iteration,
  rolloutsOfTrace,
  type TrainingSummary,
  withinBudget,
} from '../../domain/results';
import { partNames } from '../../domain/capability';
import { policyNames } from '../../domain/policies';
import type { Arm } from '../model';

export interface Count {
  scored: number;
  broken: number;
  promptTokens: number;
  completionTokens: number;
  /** Of the broken ones. */
  causes: BrokenCause[];
}

/** Those that calibrated an environment, round by round, without hints first. */
export const calibrationBatches = (rounds: readonly SynthesisRound[]): RolloutSummary[] =>
  rounds.flatMap(({ calibrationRollouts, aided = [] }) =>
    [calibrationRollouts, ...aided.map((one) => one.calibrationRollouts)].filter((batch) => batch !== undefined),
  );

/** By the sha256 of its batch. */
export type Contents = ReadonlyMap<string, readonly Outcome[]>;

type Batch = { ref: ArtifactRef };

export async function contentsOf(store: ArtifactStore, batches: readonly Batch[]): Promise<Contents> {
  const contents = new Map<string, readonly Outcome[]>();
  for (const { ref } of distinct(batches)) contents.set(ref.sha256, await readOutcomes({ store, ref }));
  return contents;
}

/** A count for each group, in the order given. */
export function countGroups(contents: Contents, groups: readonly (readonly Batch[])[]): Count[] {
  const all = groups.map((batches) => batches.flatMap(({ ref }) => inBatch(contents, ref)));
  const scored = new Set(
    all.flatMap((group) => group.flatMap(({ status, key }) => (status === 'scored' ? [key] : []))),
  );
  const counted = new Set<string>();
  return all.map((group) => {
    const count: Count = { scored: 0, broken: 0, promptTokens: 0, completionTokens: 0, causes: [] };
    for (const held of group) {
      if (counted.has(held.key) || (held.status === 'broken' && scored.has(held.key))) continue;
      counted.add(held.key);
      count[held.status] += 1;
      if (held.status === 'broken') count.causes.push(...causesIn([held]));
      else {
        count.promptTokens += held.promptTokens;
        count.completionTokens += held.completionTokens;
      }
    }
    return { ...count, causes: causesOf(count.causes) };
  });
}

const countOnce = (contents: Contents, batches: readonly Batch[]): Count => countGroups(contents, [batches])[0]!;

/** The batches that hold rollouts which broke so. */
export const brokenBy = <B extends Batch>(contents: Contents, batches: readonly B[], errorType: string): B[] =>
  batches.filter(({ ref }) =>
    contents.get(ref.sha256)?.some((held) => held.status === 'broken' && held.error.type === errorType),
  );

function inBatch(contents: Contents, ref: ArtifactRef): readonly Outcome[] {
  const held = contents.get(ref.sha256);
  if (!held) throw new Error(`batch ${ref.uri} is counted and was not read; name it in batchesByPurpose`);
  return held;
}

/** A batch; or a training, with what it counted. */
interface Part {
  ref: ArtifactRef;
  counted?: { scored: number; broken: number };
}
export type Spent = Pick<Arm, 'trainingRollouts' | 'evaluatedRollouts' | 'trainedTo' | 'allRollouts' | 'step'>;

interface Trained {
  /** To choose what is evaluated from. */
  rollouts: number;
  /** Of what is evaluated. */
  evaluated?: number;
  /** To the end, whatever of it counts. */
  trainedTo: number;
  from: ArtifactRef[];
}

const trainingPart = ({ metrics, rollouts, brokenRollouts }: TrainingSummary): Part => ({
  ref: metrics,
  counted: { scored: rollouts, broken: brokenRollouts },
});
const batches = (summaries: readonly (RolloutSummary | undefined)[]): Part[] =>
  summaries.flatMap((summary) => (summary ? [{ ref: summary.ref }] : []));

const ofCapability = ({ rounds, trained, parts }: CapabilityResult): Part[] => [
  ...batches(calibrationBatches(rounds)),
  ...(trained
    ? [
        trainingPart(trained.training),
        ...batches(trained.iterations.map(({ heldOut }) => heldOut)),
        ...batches([
          trained.synthesized.before,
          trained.synthesized.after,
          parts && trained.target.before,
          trained.target.after,
        ]),
      ]
    : []),
];

const trainedCapability = ({ trained }: CapabilityResult): Trained[] => {
  if (!trained) return [];
  const { rollouts, metrics } = trained.training;
  return [{ rollouts, evaluated: trained.best.rollouts, trainedTo: rollouts, from: [metrics] }];
};

/** Of a composite: the capabilities whose adapters its own holds. */
function heldBy({ parts = [] }: CapabilityResult, { capabilities = [] }: CampaignRecord): CapabilityResult[] {
  const names = partNames({ parts });
  return capabilities.filter(({ name }) => names.includes(name));
}

/** After what others have spent, which it builds on. */
const after = (others: readonly Trained[], own: Trained): Trained => {
  const spent = others.reduce((sum, { rollouts }) => sum + rollouts, 0);
  return {
    rollouts: spent + own.rollouts,
    evaluated: spent + (own.evaluated ?? own.rollouts),
    trainedTo: spent + own.trainedTo,
    from: [...others, own].flatMap(({ from }) => from),
  };
};

/** Its iterations within the budget, of which one is evaluated; or all of them where none is. */
const considered = ({ best, iterations = [] }: ArmResult, budget: number): Iteration[] =>
  best ? withinBudget(iterations, budget) : iterations;

function trainedBaseline(arm: ArmResult, budget: number): Trained {
  const { best, training, iterations = [] } = arm;
  return {
    rollouts: best ? (considered(arm, budget).at(-1)?.rollouts ?? 0) : 0,
    ...(best && { evaluated: best.rollouts }),
    trainedTo: training?.rollouts ?? iterations.at(-1)?.rollouts ?? 0,
    // One that no trainer made is known by the rollouts that evaluated it.
    from: training ? [training.metrics] : iterations.map(({ heldOut }) => heldOut.ref),
  };
}

/** What it takes over: the calibration of environments. */
const takenOver = ({ builtOn = [] }: ArmResult, capabilities: readonly CapabilityResult[] = []): Part[] =>
  capabilities
    .filter(({ name }) => builtOn.includes(name))
    .flatMap(({ rounds }) => batches(calibrationBatches(rounds)));

function ofBaseline(arm: ArmResult, record: CampaignRecord): Part[] {
  const budget = rolloutsOfTrace(record);
  const { best, training } = arm;
  const { from, rollouts, trainedTo } = trainedBaseline(arm, budget);
  const scored = best ? rollouts : trainedTo;
  const broken = training && scored === training.rollouts ? training.brokenRollouts : 0;
  return [
    ...from.slice(0, 1).map((ref) => ({ ref, counted: { scored, broken } })),
    ...batches(considered(arm, budget).map(({ heldOut }) => heldOut)),
    ...takenOver(arm, record.capabilities),
  ];
}

const routableArms = ({ arms = [], router }: CampaignRecord): ArmResult[] =>
  arms.filter(({ name, best }) => best && router?.options.includes(name));

const ofRouting = (record: CampaignRecord): Part[] => [
  ...batches([record.baseRollouts, record.baseHeldOut]),
  ...(record.capabilities ?? []).flatMap(ofCapability),
  ...routableArms(record).flatMap((arm) => ofBaseline(arm, record)),
];

const matrix = ({ router }: CampaignRecord): Part[] => batches(router?.outcomes.map(({ rollouts }) => rollouts) ?? []);

interface Spending {
  /** Begins the ids of its figures. */
  id: string;
  contents: Contents;
}

function all({ id, contents }: Spending, parts: Part[]) {
  const trainings = distinct(parts.filter(({ counted }) => counted)).map(({ counted }) => counted!);
  const made = countOnce(
    contents,
    parts.filter(({ counted }) => !counted),
  );
  const [scored, broken] = (['scored', 'broken'] as const).map((field) =>
    [made, ...trainings].reduce((sum, count) => sum + count[field], 0),
  ) as [number, number];
  const from = distinct(parts).map(({ ref }) => ref);
  return plainFigure({ id: `${id}.rollouts.all`, value: scored, n: scored + broken, unit: 'count', from });
}

function spent(on: Spending, trained: Trained[], parts: Part[]): Spent {
  const { id } = on;
  const from = trained.flatMap((one) => one.from);
  const sum = (field: 'rollouts' | 'trainedTo') => trained.reduce((total, one) => total + one[field], 0);
  const count = (name: string, value: number) =>
    plainFigure({ id: `${id}.rollouts.${name}`, value, n: value, unit: 'count', from: value > 0 ? from : [] });
  const [rollouts, trainedTo] = [sum('rollouts'), sum('trainedTo')];
  return {
    trainingRollouts: count('training', rollouts),
    ...(trainedTo > rollouts && { trainedTo: count('trained_to', trainedTo) }),
    allRollouts: all(on, parts),
  };
}

/** Of one training: also which iteration is evaluated. */
function spentOnOne(on: Spending, trained: Trained, step: number | undefined, parts: Part[]): Spent {
  const { id } = on;
  const { evaluated = trained.rollouts, rollouts, from } = trained;
  const value = { value: evaluated, n: evaluated, unit: 'count', from: evaluated > 0 ? from : [] } as const;
  return {
    ...spent(on, [trained], parts),
    ...(evaluated < rollouts && { evaluatedRollouts: plainFigure({ id: `${id}.rollouts.evaluated`, ...value }) }),
    ...(step !== undefined && { step }),
  };
}

/** By role. */
export const spentOn = {
  base: (on: Spending): Spent => spent(on, [], []),
  adapter({ capability, record, ...on }: Spending & { capability: CapabilityResult; record: CampaignRecord }): Spent {
    const held = heldBy(capability, record);
    const [trained] = trainedCapability(capability);
    const parts = [...held, capability].flatMap(ofCapability);
    if (!trained) return spent(on, [], parts);
    return spentOnOne(on, after(held.flatMap(trainedCapability), trained), capability.trained?.best.step, parts);
  },
  /** Adding costs nothing: what its parts have cost. */
  sum: ({ capabilities, ...on }: Spending & { capabilities: readonly CapabilityResult[] }): Spent =>
    spent(on, capabilities.flatMap(trainedCapability), capabilities.flatMap(ofCapability)),
  /** The parts, and the rollouts that its gate was trained on: those of all other options. */
  gate({ record, ...on }: Spending & { record: CampaignRecord }): Spent {
    const summed = (record.capabilities ?? []).filter(({ parts }) => !parts);
    const learnedOn = record.router?.outcomes.filter(({ option }) => option !== policyNames.gate) ?? [];
    const matrixOf = batches(learnedOn.map(({ rollouts }) => rollouts));
    return spent(on, summed.flatMap(trainedCapability), [...summed.flatMap(ofCapability), ...matrixOf]);
  },
  routed: ({ record, ...on }: Spending & { record: CampaignRecord }): Spent =>
    spent(on, trainedForRouting(record), [...ofRouting(record), ...matrix(record)]),
  /** Nobody has to choose: without the outcome matrix. */
  bound: ({ record, ...on }: Spending & { record: CampaignRecord }): Spent =>
    spent(on, trainedForRouting(record), ofRouting(record)),
  /** Of one that failed it may not be known. */
  baseline({ arm, record, ...on }: Spending & { arm: ArmResult; record: CampaignRecord }): Spent {
    const budget = rolloutsOfTrace(record);
    const parts = ofBaseline(arm, record);
    return {
      ...spentOnOne(on, trainedBaseline(arm, budget), arm.best?.step, parts),
      ...(!arm.best && { trainingRollouts: nothing(`${on.id}.rollouts.training`) }),
      ...(parts.length === 0 && { allRollouts: nothing(`${on.id}.rollouts.all`) }),
    };
  },
};

const trainedForRouting = (record: CampaignRecord): Trained[] => [
  ...(record.capabilities ?? []).flatMap(trainedCapability),
  ...routableArms(record).map((arm) => trainedBaseline(arm, rolloutsOfTrace(record))),
];

/** What the iterations of baselines were held to. */
export function budgetOf(record: CampaignRecord) {
  const from = [
    ...(record.capabilities ?? []).flatMap(({ trained }) => (trained ? [trained.training.metrics] : [])),
    ...routableArms(record).flatMap(({ training }) => (training ? [training.metrics] : [])),
  ];
  const value = rolloutsOfTrace(record);
  return plainFigure({ id: 'budget.training_rollouts', value, n: value, unit: 'count', from });
}

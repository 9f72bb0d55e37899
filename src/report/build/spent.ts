/**
 * What was spent to come to each arm. Invariants: counts are scored rollouts, as the activities returned them; a batch counts once for an
 * arm; test rollouts are nobody's; what was made for several capabilities (base rollouts, base on held-out tasks, the outcome matrix) is
 * the routed policy's alone.
 */
import type { ArtifactRef } from '../../domain/artifacts';
import {
  rolloutsOfTrace,
  withinBudget,
  type ArmResult,
  type CampaignRecord,
  type CapabilityResult,
  type Iteration,
  type TrainingResult,
} from '../../domain/results';
import type { Arm } from '../../domain/reported-arms';
import { distinct } from './evidence';
import { nothing, plainFigure } from './figures';

interface Part {
  ref: ArtifactRef;
  scored: number;
  broken: number;
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

const trainingPart = ({ metrics, rollouts, brokenRollouts }: TrainingResult): Part => ({
  ref: metrics,
  scored: rollouts,
  broken: brokenRollouts,
});
const given = (parts: (Part | undefined)[]): Part[] => parts.filter((part) => part !== undefined);

const ofCapability = ({ rounds, trained }: CapabilityResult): Part[] => [
  ...given(rounds.map(({ calibrationRollouts }) => calibrationRollouts)),
  ...(trained
    ? [
        trainingPart(trained.training),
        ...trained.iterations.map(({ heldOut }) => heldOut),
        trained.synthesized.before,
        trained.target.after,
      ]
    : []),
];

const trainedCapability = ({ trained }: CapabilityResult): Trained[] => {
  if (!trained) return [];
  const { rollouts, metrics } = trained.training;
  return [{ rollouts, evaluated: trained.best.rollouts, trainedTo: rollouts, from: [metrics] }];
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

function ofBaseline(arm: ArmResult, budget: number): Part[] {
  const { best, training } = arm;
  const { from, rollouts, trainedTo } = trainedBaseline(arm, budget);
  const scored = best ? rollouts : trainedTo;
  const broken = training && scored === training.rollouts ? training.brokenRollouts : 0;
  return [
    ...from.slice(0, 1).map((ref) => ({ ref, scored, broken })),
    ...considered(arm, budget).map(({ heldOut }) => heldOut),
  ];
}

const routableArms = ({ arms = [], router }: CampaignRecord): ArmResult[] =>
  arms.filter(({ name, best }) => best && router?.options.includes(name));

const ofRouting = (record: CampaignRecord): Part[] => [
  record.baseRollouts,
  ...given([record.baseHeldOut]),
  ...(record.capabilities ?? []).flatMap(ofCapability),
  ...routableArms(record).flatMap((arm) => ofBaseline(arm, rolloutsOfTrace(record))),
];

const matrix = ({ router }: CampaignRecord): Part[] => router?.outcomes.map(({ rollouts }) => rollouts) ?? [];

function all(id: string, batches: Part[]) {
  const parts = distinct(batches);
  return plainFigure({
    id: `${id}.rollouts.all`,
    value: parts.reduce((sum, { scored }) => sum + scored, 0),
    n: parts.reduce((sum, { scored, broken }) => sum + scored + broken, 0),
    unit: 'count',
    from: parts.map(({ ref }) => ref),
  });
}

function spent(id: string, trained: Trained[], parts: Part[]): Spent {
  const from = trained.flatMap((one) => one.from);
  const sum = (field: 'rollouts' | 'trainedTo') => trained.reduce((total, one) => total + one[field], 0);
  const count = (name: string, value: number) =>
    plainFigure({ id: `${id}.rollouts.${name}`, value, n: value, unit: 'count', from: value > 0 ? from : [] });
  const [rollouts, trainedTo] = [sum('rollouts'), sum('trainedTo')];
  return {
    trainingRollouts: count('training', rollouts),
    ...(trainedTo > rollouts && { trainedTo: count('trained_to', trainedTo) }),
    allRollouts: all(id, parts),
  };
}

/** Of one training: also which iteration is evaluated. */
function spentOnOne(id: string, trained: Trained, step: number | undefined, parts: Part[]): Spent {
  const { evaluated = trained.rollouts, rollouts, from } = trained;
  const value = { value: evaluated, n: evaluated, unit: 'count', from: evaluated > 0 ? from : [] } as const;
  return {
    ...spent(id, [trained], parts),
    ...(evaluated < rollouts && { evaluatedRollouts: plainFigure({ id: `${id}.rollouts.evaluated`, ...value }) }),
    ...(step !== undefined && { step }),
  };
}

/** By role; `id` begins the ids of its figures. */
export const spentOn = {
  base: ({ id }: { id: string }): Spent => spent(id, [], []),
  adapter({ id, capability }: { id: string; capability: CapabilityResult }): Spent {
    const [trained] = trainedCapability(capability);
    const parts = ofCapability(capability);
    return trained ? spentOnOne(id, trained, capability.trained?.best.step, parts) : spent(id, [], parts);
  },
  routed: ({ id, record }: { id: string; record: CampaignRecord }): Spent =>
    spent(id, trainedForRouting(record), [...ofRouting(record), ...matrix(record)]),
  /** Nobody has to choose: without the outcome matrix. */
  bound: ({ id, record }: { id: string; record: CampaignRecord }): Spent =>
    spent(id, trainedForRouting(record), ofRouting(record)),
  /** Of one that failed it may not be known. */
  baseline({ id, arm, record }: { id: string; arm: ArmResult; record: CampaignRecord }): Spent {
    const budget = rolloutsOfTrace(record);
    const parts = ofBaseline(arm, budget);
    return {
      ...spentOnOne(id, trainedBaseline(arm, budget), arm.best?.step, parts),
      ...(!arm.best && { trainingRollouts: nothing(`${id}.rollouts.training`) }),
      ...(parts.length === 0 && { allRollouts: nothing(`${id}.rollouts.all`) }),
    };
  },
};

const trainedForRouting = (record: CampaignRecord): Trained[] => [
  ...(record.capabilities ?? []).flatMap(trainedCapability),
  ...routableArms(record).map((arm) => trainedBaseline(arm, rolloutsOfTrace(record))),
];

/** What the iterations of baselines were held to. */
export function budgetOf(record: CampaignRecord) {
  const from = (record.capabilities ?? []).flatMap(({ trained }) => (trained ? [trained.training.metrics] : []));
  const value = rolloutsOfTrace(record);
  return plainFigure({ id: 'budget.training_rollouts', value, n: value, unit: 'count', from });
}

/**
 * What was spent to come to each arm. Invariants: test rollouts are nobody's; what was made for several capabilities (base rollouts, the base on
 * held-out tasks, the outcome matrix) is the routed policy's alone; what a baseline trained beyond the rollouts of trace counts for nothing.
 */
import type { ArtifactRef, Figure } from '../../domain/artifacts';
import { policyNames } from '../../domain/policies';
import {
  type ArmResult,
  type CampaignRecord,
  type CapabilityResult,
  rolloutsOfTrace,
  withinBudget,
} from '../../domain/results';
import type { Purpose } from '../../domain/rollout';
import type { Arm } from '../model';
import { batchesOf, countGroups, type Evidence, refsOf } from './evidence';
import { countFigure, nothing, slug } from './figures';

export type Spent = Pick<Arm, 'trainingRollouts' | 'evaluatedRollouts' | 'trainedTo' | 'allRollouts' | 'step'>;

interface Training {
  /** To choose what is evaluated from. */
  rollouts: number;
  /** To its end, whatever of it counts. */
  trainedTo: number;
  from: ArtifactRef[];
}

/** What an arm was made of: trainings, and all batches, trainings among them. */
interface Work {
  trainings: Training[];
  batches: { ref: ArtifactRef; counted?: { scored: number; broken: number } }[];
}

const together = (works: readonly Work[]): Work => ({
  trainings: works.flatMap(({ trainings }) => trainings),
  batches: works.flatMap(({ batches }) => batches),
});

const rolloutsOf = ({ trainings }: Work, field: 'rollouts' | 'trainedTo' = 'rollouts'): number =>
  trainings.reduce((sum, training) => sum + training[field], 0);

/** By role; and `budget`, the training rollouts that the iterations of baselines were held to. */
export function spendingOf(record: CampaignRecord, evidence: Evidence) {
  const { capabilities = [] } = record;
  const budget = rolloutsOfTrace(capabilities);
  const batches = batchesOf(record);
  const batchesFor = (owner: string | undefined, purpose?: Purpose) =>
    batches.filter((one) => one.owner === owner && (purpose === undefined || one.purpose === purpose));

  const capabilityWork = ({ name, work }: CapabilityResult): Work => {
    const own = work?.training;
    const training = own && { rollouts: own.rollouts, trainedTo: own.rollouts, from: [own.metrics] };
    return { trainings: training ? [training] : [], batches: batchesFor(name) };
  };

  /** An arm without an evaluated iteration has spent all that it trained. */
  const armWork = ({ best, work, builtOn = [] }: ArmResult): Work => {
    if (!work) return together([]);
    const { training, iterations } = work;
    const counting = best ? withinBudget(iterations, budget) : iterations;
    const trainedTo = training.rollouts;
    const rollouts = best ? (counting.at(-1)?.rollouts ?? 0) : 0;
    const scored = best ? rollouts : trainedTo;
    const broken = scored === trainedTo ? training.brokenRollouts : 0;
    const ref = training.metrics;
    return {
      trainings: [{ rollouts, trainedTo, from: [ref] }],
      batches: [
        { ref, counted: { scored, broken } },
        ...counting.map(({ heldOut }) => ({ ref: heldOut.ref })),
        ...capabilities.flatMap(({ name }) => (builtOn.includes(name) ? batchesFor(name, 'calibration') : [])),
      ],
    };
  };

  const routing = together([
    { trainings: [], batches: [...batchesFor(undefined, 'base_rollouts'), ...batchesFor(undefined, 'held_out')] },
    ...capabilities.map(capabilityWork),
  ]);

  const spentOn = (arm: string, work: Work, evaluated?: number): Spent => {
    const id = `arms.${slug(arm)}.rollouts`;
    const from = work.trainings.flatMap((training) => training.from);
    const spent = (what: string, value: number): Figure => countFigure(`${id}.${what}`, value, value > 0 ? from : []);
    const [rollouts, trainedTo] = [rolloutsOf(work), rolloutsOf(work, 'trainedTo')];
    const { scored, broken } = countGroups(evidence, [work.batches])[0]!;
    return {
      trainingRollouts: spent('training', rollouts),
      evaluatedRollouts: evaluated !== undefined && evaluated < rollouts ? spent('evaluated', evaluated) : undefined,
      trainedTo: trainedTo > rollouts ? spent('trained_to', trainedTo) : undefined,
      allRollouts: countFigure(`${id}.all`, scored, refsOf(work.batches), scored + broken),
    };
  };

  return {
    base: (): Spent => spentOn(policyNames.base, together([])),
    adapter(capability: CapabilityResult): Spent {
      const { name, best } = capability;
      return { ...spentOn(name, capabilityWork(capability), best?.rollouts), step: best?.step };
    },
    /** Adding costs nothing but what the parts have cost. */
    sum: (name: string, parts: readonly CapabilityResult[]): Spent =>
      spentOn(name, together(parts.map(capabilityWork))),
    routed: (): Spent =>
      spentOn(
        policyNames.routed,
        together([routing, { trainings: [], batches: batchesFor(undefined, 'outcome_matrix') }]),
      ),
    /** Without the outcome matrix: nobody has to choose. */
    bound: (): Spent => spentOn(policyNames.ceiling, routing),
    /** Of one that failed it may not be known. */
    baseline(arm: ArmResult): Spent {
      const { name, best } = arm;
      const work = armWork(arm);
      const spent = spentOn(name, work, best?.rollouts);
      const id = `arms.${slug(name)}.rollouts`;
      return {
        ...spent,
        ...(!best && { trainingRollouts: nothing(`${id}.training`) }),
        ...(work.batches.length === 0 && { allRollouts: nothing(`${id}.all`) }),
        step: best?.step,
      };
    },
    budget: (): Figure => {
      const from = capabilities.flatMap(({ name }) => batchesFor(name, 'training').map(({ ref }) => ref));
      return countFigure('budget.training_rollouts', budget, from);
    },
  };
}

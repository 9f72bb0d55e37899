/**
 * What was spent to come to each arm. Invariants: test rollouts are nobody's; what was made for several capabilities (base rollouts, the base on
 * held-out tasks, the outcome matrix) is the routed policy's alone; what a baseline trained beyond the rollouts of trace counts for nothing.
 */
import type { ArtifactRef } from '../../domain/artifacts';
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

export type Spent = Pick<Arm, 'trainingRollouts' | 'allRollouts'>;

/** Sources of an arm: its training rollouts, and all batches, trainings (with their counts) among them. */
interface Work {
  trained: number;
  batches: { ref: ArtifactRef; counted?: { scored: number; broken: number } }[];
}

const of = (batches: Work['batches']): Work => ({ trained: 0, batches });

const together = (works: readonly Work[]): Work => ({
  trained: works.reduce((sum, { trained }) => sum + trained, 0),
  batches: works.flatMap(({ batches }) => batches),
});

/** Returns what was spent, by role. Iterations of baselines count as far as they keep to the training rollouts of trace. */
export function spendingOf(record: CampaignRecord, evidence: Evidence) {
  const { capabilities = [] } = record;
  const budget = rolloutsOfTrace(capabilities);
  const batches = batchesOf(record);
  /** Without an owner: what was made for several. */
  const batchesFor = (owner: string | undefined, purpose?: Purpose) =>
    batches.filter((one) => one.owner === owner && (purpose === undefined || one.purpose === purpose));

  const capabilityWork = ({ name, work }: CapabilityResult): Work => ({
    trained: work?.training.rollouts ?? 0,
    batches: batchesFor(name),
  });

  /** An arm without an evaluated iteration has spent all that it trained. */
  const armWork = ({ best, work, builtOn = [] }: ArmResult): Work => {
    if (!work) return of([]);
    const { training, iterations } = work;
    const counting = best ? withinBudget(iterations, budget) : iterations;
    const trained = best ? (counting.at(-1)?.rollouts ?? 0) : 0;
    const scored = best ? trained : training.rollouts;
    const broken = scored === training.rollouts ? training.brokenRollouts : 0;
    const ref = training.metrics;
    return {
      trained,
      batches: [
        { ref, counted: { scored, broken } },
        ...counting.map(({ heldOut }) => ({ ref: heldOut.ref })),
        ...capabilities.flatMap(({ name }) => (builtOn.includes(name) ? batchesFor(name, 'calibration') : [])),
      ],
    };
  };

  const routing = together([
    of([...batchesFor(undefined, 'base_rollouts'), ...batchesFor(undefined, 'held_out')]),
    ...capabilities.map(capabilityWork),
  ]);

  const spentOn = (arm: string, { trained, batches: all }: Work): Spent => {
    const id = `arms.${slug(arm)}.rollouts`;
    const { scored, broken } = countGroups(evidence, [all])[0]!;
    return {
      trainingRollouts: countFigure(
        `${id}.training`,
        trained,
        refsOf(all.filter(({ counted }) => counted && trained > 0)),
      ),
      allRollouts: countFigure(`${id}.all`, scored, refsOf(all), scored + broken),
    };
  };

  return {
    base: (): Spent => spentOn(policyNames.base, of([])),
    adapter: (capability: CapabilityResult): Spent => spentOn(capability.name, capabilityWork(capability)),
    /** Adding costs nothing but what the parts have cost. */
    sum: (name: string, parts: readonly CapabilityResult[]): Spent =>
      spentOn(name, together(parts.map(capabilityWork))),
    routed: (): Spent => spentOn(policyNames.routed, together([routing, of(batchesFor(undefined, 'outcome_matrix'))])),
    /** Without the outcome matrix: nobody has to choose. */
    bound: (): Spent => spentOn(policyNames.ceiling, routing),
    /** Of one that failed it may not be known. */
    baseline(arm: ArmResult): Spent {
      const work = armWork(arm);
      const id = `arms.${slug(arm.name)}.rollouts`;
      return {
        ...spentOn(arm.name, work),
        ...(!arm.best && { trainingRollouts: nothing(`${id}.training`) }),
        ...(work.batches.length === 0 && { allRollouts: nothing(`${id}.all`) }),
      };
    },
  };
}

/**
 * The work behind each arm. Invariants: test rollouts belong to no arm; rollouts that were made for several capabilities (base rollouts, the base
 * on held-out tasks, the outcome matrix) belong to the routed policy alone; a baseline's training beyond the rollouts of trace is not counted.
 */
import type { ArtifactRef } from '../../domain/artifacts';
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

/** Returns the work of each part, and `spentOn`, which adds up the work for an arm. Iterations of baselines count as far as they keep to the training rollouts of trace. */
export function spendingOf(record: CampaignRecord, evidence: Evidence) {
  const { capabilities = [] } = record;
  const budget = rolloutsOfTrace(capabilities);
  const batches = batchesOf(record);
  /** Returns the batches of an owner; without one, those that were made for several. */
  const batchesFor = (owner: string | undefined, purpose?: Purpose) =>
    batches.filter((one) => one.owner === owner && (purpose === undefined || one.purpose === purpose));

  const ofCapability = ({ name, work }: CapabilityResult): Work => ({
    trained: work?.training.rollouts ?? 0,
    batches: batchesFor(name),
  });
  const ofAll = (purpose: Purpose): Work => ({ trained: 0, batches: batchesFor(undefined, purpose) });

  /** An arm without an evaluated iteration has spent all that it trained. */
  const armWork = ({ best, work, builtOn = [] }: ArmResult): Work => {
    if (!work) return { trained: 0, batches: [] };
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

  const spentOn = (arm: string, works: readonly Work[]): Spent => {
    const id = `arms.${slug(arm)}.rollouts`;
    const trained = works.reduce((sum, work) => sum + work.trained, 0);
    const all = works.flatMap((work) => work.batches);
    const { scored, broken } = countGroups(evidence, [all])[0]!;
    const trainings = refsOf(all.filter(({ counted }) => counted && trained > 0));
    return {
      trainingRollouts: countFigure(`${id}.training`, trained, trainings),
      allRollouts: countFigure(`${id}.all`, scored, refsOf(all), scored + broken),
    };
  };

  return {
    spentOn,
    ofCapability,
    /** Without the outcome matrix, by which a router chooses. */
    routing: [ofAll('base_rollouts'), ofAll('held_out'), ...capabilities.map(ofCapability)],
    matrix: ofAll('outcome_matrix'),
    /** The work of a failed baseline may be unknown. */
    baseline(arm: ArmResult): Spent {
      const work = armWork(arm);
      const id = `arms.${slug(arm.name)}.rollouts`;
      return {
        ...spentOn(arm.name, [work]),
        ...(!arm.best && { trainingRollouts: nothing(`${id}.training`) }),
        ...(work.batches.length === 0 && { allRollouts: nothing(`${id}.all`) }),
      };
    },
  };
}

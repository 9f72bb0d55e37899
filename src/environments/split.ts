/** Splits a target's tasks into the subsets of a campaign, by the ids, the counts and the seed alone. */
import { z } from 'zod';
import { digest } from '../store/hash';
import type { Campaign, Stage } from '../domain/campaign';
import { badInput } from '../domain/failures';
import { type Prepared, subsets } from '../domain/results';

const ids = z.array(z.string());
/** Task ids by subset. */
export const planSchema = z.record(z.enum(subsets), ids);
export type Plan = z.infer<typeof planSchema>;

/**
 * Returns the tasks of each subset. Train and validation tasks are disjoint parts of the train split; the router's are drawn from both; test tasks are
 * drawn from the test split after its first `evaluation.skip`. Counts of the campaign file are upper limits.
 */
export function splitTasks(o: {
  campaign: Campaign;
  armKinds: readonly { kind: string; trainsOnTarget?: true }[];
  /** The stage that the campaign stops after. Needs of later stages are not checked. */
  until?: Stage | undefined;
  train: string[];
  test: string[];
}): Plan {
  const { campaign, armKinds, until, test } = o;
  const { validation, rollouts, router, evaluation, seed } = campaign;
  const shuffled = shuffle(o.train, `${seed}/train`);
  const ofValidation = shuffled.slice(0, Math.min(validation.targetTasks, Math.floor(o.train.length / 2)));
  const train = shuffled.slice(ofValidation.length, ofValidation.length + rollouts.tasks);
  const { groupsPerStep } = campaign.training;
  const trainsOnTarget = campaign.arms.some((arm) =>
    armKinds.some((one) => one.kind === arm.kind && one.trainsOnTarget),
  );
  if (train.length === 0 || ofValidation.length === 0 || test.length === 0)
    throw badInput(`the target has ${o.train.length} train and ${test.length} test tasks: it needs at least 2 and 1`);
  if (until !== 'rollouts' && evaluation.skip >= test.length) {
    const has = `evaluation.skip is ${evaluation.skip}, but the target has ${test.length} test tasks`;
    throw badInput(`${has}; lower it to ${test.length - 1} or less`);
  }
  if (until !== 'rollouts' && trainsOnTarget && groupsPerStep > train.length) {
    const has = `training.groupsPerStep is ${groupsPerStep}, but the target has ${train.length} train tasks`;
    throw badInput(`${has}; lower it to ${train.length}`);
  }
  return {
    train,
    validation: ofValidation,
    router: shuffle([...ofValidation, ...train], `${seed}/router`).slice(0, router.tasks),
    test: shuffle(test.slice(evaluation.skip), `${seed}/test`).slice(0, evaluation.tasks),
  };
}

/** Returns how many tasks each subset has. */
export const sizesOf = (plan: Plan): Prepared['tasks'] =>
  Object.fromEntries(Object.entries(plan).map(([part, ids]) => [part, ids.length])) as Prepared['tasks'];

/** A permutation that depends on the ids and the seed alone. */
export function shuffle(ids: readonly string[], seed: string): string[] {
  return ids
    .map((id) => [digest([seed, id]), id] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, id]) => id);
}

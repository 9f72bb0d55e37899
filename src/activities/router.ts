/** Step 4 of the method: finds the adapters that gain anything, which may be merged, and fits the router on the outcome matrix of the train split. */
import { digest } from '../store/hash';
import type { ArtifactRef } from '../domain/artifacts';
import { kindOf, type KindSpec } from '../domain/kinds';
import { openingOf } from '../domain/messages';
import { isSuccess, type FixedPolicy } from '../domain/rollout';
import { readOutcomes, readScored, readTaskMeans } from '../rollout/read';
import { type FitInput, fitSchema, type FittedRouter } from '../routing/router';
import type { PolicyDependencies } from './context';
import { working } from './heartbeat';
import type { PoolInput } from './types';
import { keptJson, type ArtifactStore } from '../store/store';
import { gainsAnything, successDifference, together } from '../domain/statistics';

export async function fitRouter(
  { store, kinds, python, client }: PolicyDependencies,
  input: PoolInput & {
    router: KindSpec;
    definitions?: Record<string, string>;
    seed: number;
    /** `base` first. */
    outcomes: { option: string; policy: FixedPolicy; rollouts: ArtifactRef }[];
  },
): Promise<{ router: ArtifactRef }> {
  const { router: spec, definitions, outcomes, seed } = input;
  const router = kindOf(kinds.routers, spec).open(spec, { python, client });
  const maker = router.identity;
  const options = outcomes.map(({ option, policy }) => ({ name: option, policy }));
  const batches = outcomes.map(({ rollouts }) => rollouts);
  const key = `router/${digest({ maker, options, batches, definitions, seed })}`;
  const inputs = [...batches, ...options.flatMap(({ policy }) => policy.adapters.map(({ ref }) => ref))];
  const ref = await keptJson(store, { key, producer: 'fitRouter', inputs }, async (): Promise<FittedRouter> => {
    const tasks = await outcomeMatrix(store, outcomes);
    const fit = fitSchema.parse(
      await router.fit({ options, tasks, ...(definitions && { definitions }), seed, ...working('fit the router') }),
    );
    return { maker, options, ...fit };
  });
  return { router: ref };
}

/** Tasks that every option has scored rollouts of, with their successes. */
async function outcomeMatrix(
  store: ArtifactStore,
  outcomes: { option: string; rollouts: ArtifactRef }[],
): Promise<FitInput['tasks']> {
  const tasks = new Map<string, FitInput['tasks'][number]>();
  for (const { option, rollouts: ref } of outcomes) {
    const scored = (await readOutcomes({ store, ref })).filter((outcome) => outcome.status === 'scored');
    // Each task's opening is read once, from the first batch that has it.
    if (scored.some(({ task }) => !tasks.has(task)))
      for (const { task: id, messages } of await readScored({ store, ref }))
        if (!tasks.has(id)) tasks.set(id, { id, messages: openingOf(messages), outcomes: {} });
    for (const one of scored) (tasks.get(one.task)!.outcomes[option] ??= []).push(isSuccess(one) ? 1 : 0);
  }
  return [...tasks.values()].filter((task) => outcomes.every(({ option }) => task.outcomes[option]));
}

/** Rollouts before a training and after it, on the same tasks. */
export interface Batches {
  before: ArtifactRef;
  after: ArtifactRef;
}

/** Which adapters gain anything (`gainsAnything`), on held-out seeds of their own environments or on the target's tasks. */
export async function findGains(
  { store }: Pick<PolicyDependencies, 'store'>,
  input: PoolInput & {
    adapters: { name: string; own: Batches; target: Batches[] }[];
    confidence: number;
    seed: number;
  },
): Promise<{ gaining: string[] }> {
  const { adapters, confidence, seed } = input;
  const level = { confidence, seed };
  const { progress } = working('compare the adapters');
  const read = async ({ before, after }: Batches) => ({
    treatment: await readTaskMeans(store, after),
    control: await readTaskMeans(store, before),
  });
  const gaining: string[] = [];
  for (const [n, { name, own, target }] of adapters.entries()) {
    progress(n, adapters.length);
    const batches = [];
    for (const each of target) batches.push(await read(each));
    const known = {
      own: successDifference({ ...(await read(own)), level }),
      target: successDifference({ ...together(batches), level }),
    };
    if (gainsAnything(known)) gaining.push(name);
  }
  return { gaining };
}

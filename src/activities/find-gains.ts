/** Which adapters gain anything, beyond chance, by all that is known of them so far. Invariant: the rule is that of the report. */
import type { ArtifactRef } from '../domain/artifacts';
import { gainsAnything, successDifference, together } from '../domain/statistics';
import { readTaskMeans } from '../rollout/read';
import { type Dependencies, working } from './context';

/** Rollouts before a training and after it, on the same tasks. */
interface Batches {
  before: ArtifactRef;
  after: ArtifactRef;
}

/**
 * Which adapters gain anything (`gainsAnything`): on held-out seeds of their own environments, or on the target's tasks, batch by batch, each
 * against what it started from.
 */
export async function findGains(
  { store }: Pick<Dependencies, 'store'>,
  {
    adapters,
    ...level
  }: {
    adapters: { name: string; own: Batches; target: Batches[] }[];
    confidence: number;
    /** Of the draws. */
    seed: number;
  },
): Promise<{ gaining: string[] }> {
  const { progress } = working('compare the adapters');
  const read = async ({ before, after }: { before: ArtifactRef; after: ArtifactRef }) => ({
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

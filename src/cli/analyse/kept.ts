/**
 * What an analysis keeps in the store. Invariant: it lies under a key of what it was made from, as a campaign's does, and is looked up before it
 * is made.
 */
import { z } from 'zod';
import { candidatesKey, labelsKey, type Analyst } from '../../analyst/analyst';
import { canonical, digest } from '../../artifacts/hash';
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import type { SelectionRule } from '../../domain/campaign';
import { discoverySchema } from '../../domain/capability';
import type { Loaded } from './conversations';

/** Of discovery and passes. */
export const SEED = 1;

interface Input {
  analyst: Pick<Analyst, 'identity' | 'ignoresSeed'>;
  loaded: Pick<Loaded, 'rollouts' | 'description'>;
}

/** What keys are made of. */
export const asked = ({ analyst, loaded }: Input, rollouts: ArtifactRef) => {
  return { analyst, rollouts, version: loaded.description.version, seed: SEED };
};

/** What an earlier run finished: it is not asked for again. */
export interface Kept {
  /** How many; undefined where discovery is to be done. */
  candidates?: number;
  passes: number;
}

export async function keptAlready(input: Input & { rule: SelectionRule; store: ArtifactStore }): Promise<Kept> {
  const { rule, store } = input;
  const rollouts = await keepRollouts(input);
  const ref = await store.find(candidatesKey({ ...asked(input, rollouts), rule }));
  if (!ref) return { passes: 0 };
  const { candidates } = await readJson(store, ref, discoverySchema);
  const found = await Promise.all(
    Array.from({ length: rule.passes }, (_, pass) =>
      store.find(labelsKey({ ...asked(input, rollouts), candidates: ref, pass })),
    ),
  );
  return { candidates: candidates.length, passes: found.filter(Boolean).length };
}

/** One line a conversation, as a campaign keeps its base rollouts. */
export async function keepRollouts({
  store,
  loaded: { rollouts },
}: Pick<Input, 'loaded'> & { store: ArtifactStore }): Promise<ArtifactRef> {
  const key = `conversations/${digest(rollouts.map((rollout) => rollout.key))}`;
  // Together they may be longer than a text can be.
  const body = Buffer.concat(rollouts.map((rollout) => Buffer.from(`${canonical(rollout)}\n`)));
  return store.put({ key, producer: 'analyse', inputs: [], mediaType: 'application/jsonl', body });
}

/** What is under the key, or else is made and kept there. */
export async function kept<S extends z.ZodType>(
  o: { store: ArtifactStore; key: string; inputs: ArtifactRef[]; schema: S },
  make: () => Promise<z.input<S>>,
): Promise<{ ref: ArtifactRef; value: z.output<S> }> {
  const { store, key, inputs, schema } = o;
  const ref =
    (await store.find(key)) ??
    (await store.put({
      key,
      producer: 'analyse',
      inputs,
      mediaType: 'application/json',
      body: canonical(await make()),
    }));
  return { ref, value: await readJson(store, ref, schema) };
}

const readJson = async <S extends z.ZodType>(store: ArtifactStore, ref: ArtifactRef, schema: S): Promise<z.output<S>> =>
  schema.parse(JSON.parse((await store.read(ref)).toString('utf8')));

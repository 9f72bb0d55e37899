/** Stores decisions of people, so that a campaign that is started again does not ask again. */
import { digest } from '../store/hash';
import { keptJson, readJson } from '../store/store';
import { decisionSchema, type Decision } from '../domain/approval';
import type { Dependencies } from './context';

export async function recallDecision(
  { store }: Pick<Dependencies, 'store'>,
  { about, of }: { about: string; of: string },
): Promise<Decision | null> {
  const ref = await store.find(keyOf({ about, of }));
  return ref ? readJson(store, ref, decisionSchema) : null;
}

export async function keepDecision(
  { store }: Pick<Dependencies, 'store'>,
  { about, of, decision }: { about: string; of: string; decision: Decision },
): Promise<void> {
  await keptJson(store, { key: keyOf({ about, of }), producer: 'keepDecision', inputs: [] }, () => decision);
}

const keyOf = (of: { about: string; of: string }) => `approval/${digest(of)}`;

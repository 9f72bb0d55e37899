/** Decisions of people. Invariant: the first that is kept of a thing stays; a campaign that is started again finds it. */
import { canonical, digest } from '../artifacts/hash';
import { decisionSchema } from '../domain/approval';
import { readJson, type Dependencies } from './context';
import type { ControlActivities } from './types';

export function createApproval({
  store,
}: Pick<Dependencies, 'store'>): Pick<ControlActivities, 'recallDecision' | 'keepDecision'> {
  const keyOf = (of: { about: string; of: string }) => `approval/${digest(of)}`;
  return {
    async recallDecision({ about, of }) {
      const ref = await store.find(keyOf({ about, of }));
      return ref ? readJson(store, ref, decisionSchema) : null;
    },

    async keepDecision({ about, of, decision }) {
      await store.put({
        key: keyOf({ about, of }),
        producer: 'keepDecision',
        inputs: [],
        mediaType: 'application/json',
        body: canonical(decision),
      });
    },
  };
}

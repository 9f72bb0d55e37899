/**
 * Who teaches in a conversation that a student has had: the policy that a router gives it to. Invariant: the router sees what it would see
 * when it is asked in earnest; each adapter of its choice is replaced by what stands for it, and one for which nothing does ends the training.
 */
import type { ArtifactStore } from '../artifacts/store';
import type { EnvironmentDescription } from '../domain/environment';
import { agentView, openingOf } from '../domain/messages';
import type { FixedPolicy, Rollout } from '../domain/rollout';
import { choiceSeed } from '../rollout/keys';
import type { Resolve } from '../rollout/resolve';
import type { TeacherPart } from '../rollout/training-batch';
import { fail } from './context';
import type { TeacherSpec } from './types';

/** By rollout's key. `beat` is called whenever one more is known. */
export type Teacher = (records: readonly Rollout[], beat: () => void) => Promise<Map<string, TeacherPart[]>>;

export function openTeacher(o: {
  store: ArtifactStore;
  resolve: Resolve;
  teacher: TeacherSpec;
  tools: EnvironmentDescription['tools'];
  signal: AbortSignal;
}): Teacher {
  const { store, resolve, tools, signal } = o;
  const { router, instead } = o.teacher;
  const stands = new Map(instead.map(({ adapter, adapters }) => [adapter, adapters]));

  async function partsOf({ adapters, prompt }: FixedPolicy, chosen: string): Promise<TeacherPart[]> {
    const unfit = (why: string) => fail('BadJob', `the router chose ${chosen}, ${why}; distill can't learn from that`);
    if (prompt) throw unfit('which has a prompt of its own');
    const weights = new Map<string, number>();
    for (const { ref, weight } of adapters) {
      const own = stands.get(ref.sha256);
      if (!own) throw unfit(`which holds an adapter of no capability (${ref.uri})`);
      for (const part of own) {
        const folder = await store.folder(part.ref);
        weights.set(folder, (weights.get(folder) ?? 0) + weight * part.weight);
      }
    }
    // In one order: equal sums are one teacher.
    return [...weights]
      .map(([adapter, weight]) => ({ adapter, weight }))
      .sort((a, b) => (a.adapter < b.adapter ? -1 : 1));
  }

  return async (records, beat) => {
    const scored = records.flatMap((record) => (record.status === 'scored' ? [record] : []));
    const taught = scored.map(async ({ key, messages }): Promise<[string, TeacherPart[]]> => {
      const opening = { messages: agentView(openingOf(messages)), tools, seed: choiceSeed(key), signal };
      const { policy, routed } = await resolve({ router }, opening);
      const parts = await partsOf(policy, routed?.chosen ?? 'a policy');
      beat();
      return [key, parts];
    });
    return new Map(await Promise.all(taught));
  };
}

/** Whether a policy server takes adapters as a campaign will train them: one that changes nothing goes the way of all, before anything is spent. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { digest } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { hashOf, modelOf, writeBlankAdapter } from './base-model';
import type { PolicyClient } from './client';

interface Trial {
  store: ArtifactStore;
  client: Pick<PolicyClient, 'sample' | 'unload'>;
  python: string;
  /** The base of the campaign's policies, and its folder. */
  base: string;
  model: string;
  targetModules: readonly string[];
  rank: number;
  signal?: AbortSignal;
  onWork?: () => void;
}

/** Loads one from the store, samples a token from it and unloads it. Throws AdapterRefused. */
export async function tryAdapter({ client, signal, ...trial }: Trial): Promise<void> {
  const policy = {
    base: trial.base,
    adapters: [{ ref: await blankAdapter({ ...trial, ...(signal && { signal }) }), weight: 1 }],
  };
  const messages = [{ role: 'user' as const, content: 'hello' }];
  const sampling = { temperature: 0, topP: 1, maxTokens: 1 };
  try {
    await client.sample({ policy, messages, tools: [], sampling, seed: 0, ...(signal && { signal }) });
  } finally {
    await client.unload(policy);
  }
}

/** Kept, since the server has to see it where it sees all others. */
async function blankAdapter(o: Omit<Trial, 'client'>): Promise<ArtifactRef> {
  const { store, base, targetModules, rank, ...asked } = o;
  const key = `blank-adapter/${digest({ base: hashOf(modelOf(base)), targetModules, rank })}`;
  const known = await store.find(key);
  if (known) return known;
  const work = await mkdtemp(join(tmpdir(), 'adapter-'));
  try {
    const folder = join(work, 'blank');
    await writeBlankAdapter({ ...asked, targetModules, rank, folder });
    return await store.putFolder({ key, producer: 'try-adapter', inputs: [], folder });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

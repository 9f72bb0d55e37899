/**
 * Loads policies into a policy server. An adapter's name is the sha256 of its content, so a name that the server knows always means the same weights. A
 * server that can read the bucket of the store fetches adapters by name; any other server is told the folder to read.
 */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { z } from 'zod';
import { ifThere } from '../store/durable-file';
import type { ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { isFailure } from '../domain/failures';
import { jsonText } from '../domain/messages';
import type { FixedPolicy } from '../domain/rollout';
import { type Merge, partsOf, plainAdapter, weightsOf } from './merge';
import type { PolicyServer } from './server';

const configSchema = jsonText.pipe(z.object({ target_parameters: z.array(z.string()).nullish() }));

/** Returns whether a PEFT folder changes experts that a layer holds in one parameter. */
async function changesExperts(folder: string): Promise<boolean> {
  const config = await ifThere(readFile(join(folder, 'adapter_config.json'), 'utf8'));
  return (configSchema.safeParse(config).data?.target_parameters ?? []).length > 0;
}

/** Returns the adapter's name on servers, which trainer/campaign_adapters computes too. */
export const modelName = ({ sha256 }: ArtifactRef): string => `a-${sha256}`;

interface Loaded {
  name: Promise<string>;
  users: number;
}

/** `capacity` is the number of adapters that stay loaded; the least recently used idle ones above it are unloaded. */
export function createAdapters(o: { server: PolicyServer; store: ArtifactStore; merge: Merge; capacity?: number }) {
  const { server, store, merge, capacity = 16 } = o;
  /** Keyed by weights, least recently used first; the base model has the key undefined. */
  const loaded = new Map<string | undefined, Loaded>();

  async function load(policy: FixedPolicy): Promise<string> {
    const parts = partsOf(policy.adapters);
    const models = await server.models();
    if (parts.length === 0) return models.base;
    const ref = plainAdapter(parts) ?? (await merge(parts));
    const name = modelName(ref);
    const from = models.adapters.get(name);
    // The folder belonged to a home that is gone. vLLM would read it again after an eviction, and end.
    const isGone = from !== undefined && !store.isBucket && isAbsolute(from) && !existsSync(from);
    if (isGone) await server.unloadAdapter(name).catch(() => undefined);
    else if (from !== undefined) return name;
    // A server fetches from buckets only.
    if (store.isBucket && (await server.fetchAdapter(name))) return name;
    try {
      const path = await store.folder(ref);
      await server.loadAdapter({ name, path, experts: await changesExperts(path) });
    } catch (error) {
      // Another worker may load the same name at the same moment, which some servers refuse.
      if (!isFailure(error, 'AdapterRefused') || !(await server.models()).adapters.has(name)) throw error;
    }
    return name;
  }

  function use(policy: FixedPolicy): Loaded {
    const weights = weightsOf(policy);
    const entry = loaded.get(weights) ?? { name: load(policy), users: 0 };
    loaded.delete(weights);
    loaded.set(weights, entry);
    entry.name.catch(() => forget(weights, entry));
    return entry;
  }

  function forget(weights: string | undefined, entry: Loaded): void {
    if (loaded.get(weights) === entry) loaded.delete(weights);
  }

  /** Ignores failures: an adapter that stays loaded costs memory only. */
  async function drop(weights: string): Promise<void> {
    const entry = loaded.get(weights);
    loaded.delete(weights);
    await entry?.name.then(server.unloadAdapter).catch(() => undefined);
  }

  async function unloadIdle(): Promise<void> {
    for (const [weights, entry] of loaded) {
      if (loaded.size <= capacity + 1) return; // the base model is not counted
      if (weights !== undefined && entry.users === 0) await drop(weights);
    }
  }

  async function once<Result>(entry: Loaded, work: (model: string) => Promise<Result>): Promise<Result> {
    entry.users++;
    try {
      const model = await entry.name;
      if (loaded.size > capacity + 1) await unloadIdle();
      return await work(model);
    } finally {
      entry.users--;
    }
  }

  return {
    async unload(policy: FixedPolicy): Promise<void> {
      const weights = weightsOf(policy);
      if (weights !== undefined) await drop(weights);
    },

    /** Loads the model and does not unload it while `work` runs. */
    async withModel<Result>(policy: FixedPolicy, work: (model: string) => Promise<Result>): Promise<Result> {
      const entry = use(policy);
      try {
        return await once(entry, work);
      } catch (error) {
        if (!isFailure(error, 'PolicyNotLoaded')) throw error;
        // The server was restarted, or another worker unloaded the model. Other models are loaded again when they are used.
        forget(weightsOf(policy), entry);
        return once(use(policy), work);
      }
    },
  };
}

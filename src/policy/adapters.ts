/**
 * Loads policies into a policy server. An adapter's name is the sha256 of its content, so a name that the server knows always means the same weights. A
 * server that can read the bucket of the store fetches adapters by name; any other server gets the path of a folder to read.
 */
import type { ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { isFailure } from '../domain/failures';
import type { FixedPolicy } from '../domain/rollout';
import { type Merge, partsOf, plainAdapter, weightsOf } from './merge';
import type { PolicyServer } from './server';

/** Returns the adapter's name on servers, which trainer/campaign_adapters computes too. */
export const modelName = ({ sha256 }: ArtifactRef): string => `a-${sha256}`;

interface Loaded {
  name: Promise<string>;
  users: number;
}

/** The number of adapters that stay loaded; the least recently used idle ones above it are unloaded. */
const CAPACITY = 16;

export function createAdapters(o: { server: PolicyServer; store: ArtifactStore; merge: Merge }) {
  const { server, store, merge } = o;
  /** Keyed by weights, least recently used first; the base model has the key undefined. */
  const loaded = new Map<string | undefined, Loaded>();

  async function load(policy: FixedPolicy): Promise<string> {
    const parts = partsOf(policy.adapters);
    const models = await server.models();
    if (parts.length === 0) return models.base;
    const ref = plainAdapter(parts) ?? (await merge(parts));
    const name = modelName(ref);
    if (models.adapters.has(name)) return name;
    // A server fetches from buckets only.
    if (store.isBucket && (await server.fetchAdapter(name))) return name;
    try {
      await server.loadAdapter({ name, path: await store.folder(ref) });
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
      if (loaded.size <= CAPACITY + 1) return; // the base model is not counted
      if (weights !== undefined && entry.users === 0) await drop(weights);
    }
  }

  return {
    async unload(policy: FixedPolicy): Promise<void> {
      const weights = weightsOf(policy);
      if (weights !== undefined) await drop(weights);
    },

    /** Loads the model and does not unload it while `work` runs. */
    async withModel<Result>(policy: FixedPolicy, work: (model: string) => Promise<Result>): Promise<Result> {
      for (let isLast = false; ; isLast = true) {
        const entry = use(policy);
        entry.users++;
        try {
          const model = await entry.name;
          await unloadIdle();
          return await work(model);
        } catch (error) {
          if (isLast || !isFailure(error, 'PolicyNotLoaded')) throw error;
          // The server was restarted, or another worker unloaded the model. Other models are loaded again when they are used.
          forget(weightsOf(policy), entry);
        } finally {
          entry.users--;
        }
      }
    },
  };
}

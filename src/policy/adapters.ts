/**
 * Which model name serves a policy. A name is derived from the adapters' content, so a name that the server knows always means the same weights,
 * whoever loaded it.
 */
import type { ArtifactStore } from '../artifacts/store';
import { isFailure } from '../domain/failures';
import type { FixedPolicy } from '../domain/rollout';
import { limited } from '../domain/signs-of-life';
import { type Merge, modelName, partsOf, plainAdapter } from './merge';
import type { PolicyServer } from './server';

interface Loaded {
  name: Promise<string>;
  users: number;
}

/** `capacity`: adapters and merges that stay loaded; the least recently used idle ones above it are unloaded. */
export function createAdapters(o: { server: PolicyServer; store: ArtifactStore; merge: Merge; capacity?: number }) {
  const { server, store, merge, capacity = 16 } = o;
  /** In the order of use, oldest first; the base model is under its undefined name. */
  const loaded = new Map<string | undefined, Loaded>();

  async function load(policy: FixedPolicy, name: string | undefined): Promise<string> {
    const models = await server.models();
    if (name === undefined) return models.base;
    if (models.adapters.includes(name)) return name;
    const parts = partsOf(policy.adapters);
    const path = await store.folder(plainAdapter(parts) ?? (await merge(parts)));
    try {
      await server.loadAdapter({ name, path });
    } catch (error) {
      // Another worker may load the same name at the same moment, which some servers refuse.
      if (!isFailure(error, 'AdapterRefused') || !(await server.models()).adapters.includes(name)) throw error;
    }
    return name;
  }

  function use(policy: FixedPolicy): Loaded {
    const name = modelName(policy);
    const entry = loaded.get(name) ?? { name: load(policy, name), users: 0 };
    loaded.delete(name);
    loaded.set(name, entry);
    entry.name.catch(() => forget(name, entry));
    return entry;
  }

  function forget(name: string | undefined, entry: Loaded): void {
    if (loaded.get(name) === entry) loaded.delete(name);
  }

  async function drop(name: string): Promise<void> {
    loaded.delete(name);
    await server.unloadAdapter(name).catch(() => undefined);
  }

  async function unloadIdle(): Promise<void> {
    for (const [name, entry] of loaded) {
      if (loaded.size <= capacity + 1) return; // the base model is not counted
      if (name !== undefined && entry.users === 0) await drop(name);
    }
  }

  async function once<Result>(entry: Loaded, work: (model: string) => Promise<Result>): Promise<Result> {
    entry.users++;
    try {
      const model = await limited(entry.name);
      if (loaded.size > capacity + 1) await unloadIdle();
      return await work(model);
    } finally {
      entry.users--;
    }
  }

  return {
    /** Makes the server able to serve the policy, once for all concurrent callers; the model name to ask for. */
    ensurePolicy: (policy: FixedPolicy): Promise<string> => limited(use(policy).name),

    /** Best effort: what stays loaded costs memory only, and an unknown name is already what we want. */
    async unload(policy: FixedPolicy): Promise<void> {
      const name = modelName(policy);
      if (name !== undefined) await drop(name);
    },

    /** Does `work` with the model ensured, and not unloaded by us until it is over. */
    async withModel<Result>(policy: FixedPolicy, work: (model: string) => Promise<Result>): Promise<Result> {
      const entry = use(policy);
      try {
        return await once(entry, work);
      } catch (error) {
        if (!isFailure(error, 'PolicyNotLoaded')) throw error;
        // The server was restarted, or another worker unloaded the model. What else was loaded may be there still: whoever asks for it finds out.
        forget(modelName(policy), entry);
        return once(use(policy), work);
      }
    },
  };
}

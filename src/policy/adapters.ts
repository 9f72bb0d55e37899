/**
 * Which model name serves a policy. Invariant: a name is derived from the adapters' content, so a name that the server knows
 * always means the same weights, whoever loaded it.
 */
import type { ArtifactStore } from '../artifacts/store';
import { digest } from '../artifacts/hash';
import type { Policy } from '../domain/rollout';
import { isFailure, OutsideFailure } from '../rollout/failure';
import type { PolicyServer } from './server';

export interface Adapters {
  /** Makes the server able to serve the policy, once for all concurrent callers; the model name to ask for. */
  ensurePolicy(policy: Policy): Promise<string>;
  /**
   * Does `work` with the model ensured, and not unloaded by us until it is over. If the server turns out not to know the model
   * (PolicyNotLoaded), loads it again and does the work once more.
   */
  withModel<Result>(policy: Policy, work: (model: string) => Promise<Result>): Promise<Result>;
}

/** What the server calls a policy; undefined for the base model. */
export function modelName({ adapters }: Policy): string | undefined {
  const [first, ...others] = adapters;
  if (!first) return undefined;
  if (others.length === 0 && first.weight === 1) return `a-${first.ref.sha256.slice(0, 12)}`;
  return `m-${digest(adapters.map(({ ref, weight }) => [ref.sha256, weight])).slice(0, 12)}`;
}

interface Loaded {
  name: Promise<string>;
  users: number;
}

/** `capacity`: adapters and merges that stay loaded; the least recently used idle ones above it are unloaded. */
export function createAdapters({
  server,
  store,
  capacity = 16,
}: {
  server: PolicyServer;
  store: ArtifactStore;
  capacity?: number;
}): Adapters {
  /** In the order of use, oldest first; the base model is under its undefined name. */
  let loaded = new Map<string | undefined, Loaded>();

  async function load(policy: Policy, name: string | undefined): Promise<string> {
    const models = await server.models();
    if (name === undefined) return models.base;
    if (models.adapters.includes(name)) return name;
    const [first, ...others] = policy.adapters;
    if (first && others.length === 0 && first.weight === 1) {
      await loadUnlessThere(name, () => store.folder(first.ref).then((path) => server.loadAdapter({ name, path })));
      return name;
    }
    await merge(policy, name);
    return name;
  }

  async function merge({ base, adapters }: Policy, name: string): Promise<void> {
    const names = await Promise.all(adapters.map(({ ref }) => ensurePolicy({ base, adapters: [{ ref, weight: 1 }] })));
    const parts = adapters.map(({ weight }, n) => ({ lora_name: names[n]!, weight }));
    try {
      await loadUnlessThere(name, () => server.mergeAdapters({ name, adapters: parts }));
    } catch (error) {
      const known = isFailure(error, 'PolicyNotLoaded') ? (await server.models()).adapters : [];
      if (!names.every((part) => known.includes(part))) throw error;
      // It knows the parts, so what it did not find is the call itself.
      throw new OutsideFailure(
        'PolicyRequestRejected',
        `the policy server can't merge adapters (${name}); serve one adapter`,
      );
    }
  }

  /** Another worker may load the same name at the same moment; to some servers that is a bad request. */
  async function loadUnlessThere(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isFailure(error, 'PolicyRequestRejected') || !(await server.models()).adapters.includes(name)) throw error;
    }
  }

  function use(policy: Policy): Loaded {
    const name = modelName(policy);
    const generation = loaded;
    let entry = generation.get(name);
    if (!entry) {
      const fresh: Loaded = { name: load(policy, name), users: 0 };
      fresh.name.catch(() => generation.get(name) === fresh && generation.delete(name));
      entry = fresh;
    }
    generation.delete(name);
    generation.set(name, entry);
    return entry;
  }

  async function unloadIdle(): Promise<void> {
    for (const [name, entry] of loaded) {
      if (loaded.size <= capacity + 1) return; // the base model is not counted
      if (name === undefined || entry.users > 0) continue;
      loaded.delete(name);
      // Best effort: what stays loaded costs memory only, and an unknown name is already what we want.
      await server.unloadAdapter(name).catch(() => undefined);
    }
  }

  async function ensurePolicy(policy: Policy): Promise<string> {
    return use(policy).name;
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
    ensurePolicy,
    async withModel(policy, work) {
      const entry = use(policy);
      try {
        return await once(entry, work);
      } catch (error) {
        if (!isFailure(error, 'PolicyNotLoaded')) throw error;
        // The server was restarted, or another worker unloaded the model. Of all who notice, the first forgets what was loaded.
        if (loaded.get(modelName(policy)) === entry) loaded = new Map();
        return once(use(policy), work);
      }
    },
  };
}

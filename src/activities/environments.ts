/** Environments that are open in this worker: one of each, shared by all its activities. */
import { canonical } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import type { EnvironmentSpec } from '../domain/kinds';
import type { Environment } from '../domain/environment';
import type { EnvironmentKind } from '../environments/kinds';
import { openEnvironment } from '../environments/open';

export class EnvironmentPool {
  private readonly open = new Map<string, Promise<Environment>>();

  constructor(
    private readonly store: ArtifactStore,
    private readonly kinds: readonly EnvironmentKind[],
  ) {}

  get(spec: EnvironmentSpec): Promise<Environment> {
    const key = canonical(spec);
    const known = this.open.get(key);
    if (known) return known;
    const opening = Promise.resolve(openEnvironment(spec, { store: this.store, kinds: this.kinds }));
    this.open.set(key, opening);
    // What failed to open is tried again by the next activity.
    opening.catch(() => this.open.delete(key));
    return opening;
  }

  async close(): Promise<void> {
    const all = await Promise.allSettled(this.open.values());
    this.open.clear();
    await Promise.all(all.map((e) => (e.status === 'fulfilled' ? e.value.close() : undefined)));
  }
}

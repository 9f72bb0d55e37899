/** The rollouts of an unfinished batch, in chunks that are created once: workers that play one batch agree on which record of a rollout counts. */
import { Sequence } from '../store/sequence';
import type { ArtifactStore } from '../store/store';
import { breathing } from '../domain/concurrency';
import type { ScoredRollout } from '../domain/rollout';

const CHUNK_BYTES = 8 * 1024 ** 2;

/** Rollouts that end while a chunk is written share the next one. */
interface Group {
  rollouts: Map<string, ScoredRollout>;
  written: Promise<void>;
}

export class Chunks {
  private readonly sequence: Sequence;
  private readonly durable = new Map<string, ScoredRollout>();
  private group: Group | undefined;
  private lastWrite = Promise.resolve();

  /** `path`: the batch's path in the store. */
  constructor(store: Pick<ArtifactStore, 'files'>, path: string) {
    this.sequence = new Sequence(store.files, path);
  }

  async read(): Promise<ReadonlyMap<string, ScoredRollout>> {
    for (const text of await this.sequence.read()) await this.addChunk(text);
    return this.durable;
  }

  /** Resolves when the rollout is durable, with the record that counts: that of another worker if it was first. */
  async append(rollout: ScoredRollout): Promise<ScoredRollout> {
    if (!this.group) {
      const rollouts: Group['rollouts'] = new Map();
      this.group = { rollouts, written: this.write(this.lastWrite, rollouts) };
      this.lastWrite = this.group.written;
    }
    this.group.rollouts.set(rollout.key, rollout);
    await this.group.written;
    return this.durable.get(rollout.key)!;
  }

  async close(): Promise<void> {
    await this.lastWrite.catch(() => undefined); // a failed write has rejected its appends
  }

  private async write(previous: Promise<void>, rollouts: Group['rollouts']): Promise<void> {
    await previous.catch(() => undefined);
    this.group = undefined; // later appends go into the next group
    for (;;) {
      const chunk: ScoredRollout[] = [];
      const lines: string[] = [];
      let bytes = 0;
      for (const rollout of rollouts.values()) {
        if (this.durable.has(rollout.key) || bytes >= CHUNK_BYTES) continue;
        bytes += lines[lines.push(JSON.stringify(rollout)) - 1]!.length;
        chunk.push(rollout);
      }
      if (chunk.length === 0) return;
      const added = await this.sequence.add(lines.join('\n'));
      if (added.isOwn) for (const rollout of chunk) this.durable.set(rollout.key, rollout);
      else await this.addChunk(added.text);
    }
  }

  /** Adds the rollouts of a chunk. If several chunks hold a rollout, the first counts. */
  private async addChunk(text = ''): Promise<void> {
    const breathe = breathing();
    for (const line of text.split('\n').filter(Boolean)) {
      const rollout = JSON.parse(line) as ScoredRollout;
      if (!this.durable.has(rollout.key)) this.durable.set(rollout.key, rollout);
      await breathe(line.length);
    }
  }
}

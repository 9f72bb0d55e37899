/** What a report is read from: batches, their parts, JSON artifacts. */
import { z } from 'zod';
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import { jsonText } from '../../domain/messages';
import type { TaskMeans } from '../../domain/paired-statistics';

/** Each batch once: equal policies (a training that found nothing to learn) share their batches. */
export const distinct = <Batch extends { ref: ArtifactRef }>(batches: readonly Batch[]): Batch[] => [
  ...new Map(batches.map((batch) => [batch.ref.sha256, batch])).values(),
];

/** The branches of several batches' tasks, in order of name, each with its part of every batch. */
export function byBranch(...batches: TaskMeans[]): { branch: string; parts: TaskMeans[] }[] {
  const names = new Set(batches.flatMap(({ branch }) => [...branch.values()]));
  const part = (means: TaskMeans, name: string): TaskMeans => {
    const of = <V>(values: Map<string, V>) => new Map([...values].filter(([task]) => means.branch.get(task) === name));
    return { ...means, success: of(means.success), reward: of(means.reward), branch: of(means.branch) };
  };
  return [...names].sort().map((branch) => ({ branch, parts: batches.map((means) => part(means, branch)) }));
}

/** A JSON artifact, checked. Throws if it is not what the report takes it for. */
export async function readArtifact<S extends z.ZodType>(o: {
  store: ArtifactStore;
  ref: ArtifactRef;
  schema: S;
  /** What it should be, for the error. */
  what: string;
}): Promise<z.output<S>> {
  const { store, ref, schema, what } = o;
  const parsed = jsonText.pipe(schema).safeParse((await store.read(ref)).toString('utf8'));
  if (parsed.success) return parsed.data;
  throw new Error(`${ref.uri} is not ${what}: ${z.prettifyError(parsed.error)}; it was made by another version`);
}

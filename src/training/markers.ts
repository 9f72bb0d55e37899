/** The markers of a training: a record for each checkpoint, created once. A worker that loses a number to another state continues from that state. */
import { z } from 'zod';
import { digest } from '../store/hash';
import { Sequence } from '../store/sequence';
import type { ArtifactStore } from '../store/store';
import { artifactRefSchema } from '../domain/artifacts';
import { jsonText } from '../domain/messages';
import { fixedPolicySchema } from '../domain/rollout';

const count = z.number().int().nonnegative();

export const batchSchema = z.object({
  step: count,
  ref: artifactRefSchema,
  scored: count,
  broken: count,
  promptTokens: count,
  completionTokens: count,
  shared: z.literal(true).optional(),
});
export type BatchRecord = z.infer<typeof batchSchema>;

const markerSchema = z.object({
  /** New for each marker; names the folder of its state in the store. */
  id: z.string(),
  owner: z.string(),
  name: z.string(),
  step: count,
  /** sha256 of the manifest of the learner's checkpoint; absent where the learner keeps none. */
  manifest: z.string().optional(),
  files: z.array(z.object({ path: z.string(), sha256: z.string() })),
  /** Lines of metrics.jsonl since the marker before. */
  metrics: z.array(z.string()),
  /** The batches that were learned from since the marker before. */
  batches: z.array(batchSchema),
  /** Set where the step is a candidate for the best iteration. */
  policy: fixedPolicySchema.optional(),
});
export type Marker = z.infer<typeof markerSchema>;
const markerText = jsonText.pipe(markerSchema);

/** Path of a training in the store. It lives as long as its campaign. */
export const trainingPath = (campaign: string, id: string): string => `trainings/${campaign}/${id}`;

export class Markers {
  private readonly sequence: Sequence;
  private current: Marker[] = [];

  constructor(store: Pick<ArtifactStore, 'files'>, path: string) {
    this.sequence = new Sequence(store.files, `${path}/markers`);
  }

  /** The markers that count, by step: a step that was done again takes the place of the later ones. */
  get line(): readonly Marker[] {
    return this.current;
  }

  async read(): Promise<void> {
    for (const text of await this.sequence.read()) this.take(text);
  }

  /** Adds the marker, or takes the one of another worker that was first. Returns the one that has the number, undefined for a damaged one. */
  async add(marker: Marker): Promise<Marker | undefined> {
    const text = JSON.stringify(marker);
    const added = await this.sequence.add(text);
    return this.take(added.isOwn ? text : added.text);
  }

  private take(text: string | undefined): Marker | undefined {
    const marker = markerText.safeParse(text).data;
    if (marker) this.current = [...this.current.filter(({ step }) => step < marker.step), marker];
    return marker;
  }
}

/** Returns true if going on from one is going on from the other. */
export const isSameState = (a: Marker, b: Marker): boolean => {
  const stateOf = ({ step, manifest, batches, policy }: Marker) => digest({ step, manifest, batches, policy });
  return stateOf(a) === stateOf(b);
};

export const metricsLine = jsonText.pipe(z.looseObject({ step: z.number() }));

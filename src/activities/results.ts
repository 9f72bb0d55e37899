/**
 * What workflows came to and what people decided, as artifacts. Results pass through the workflow in pieces, and what is read back is no more
 * than is decided on next, so that no payload grows with a campaign.
 */
import { z } from 'zod';
import { canonical, digest, sha256 } from '../artifacts/hash';
import { type ArtifactStore, keptJson, readJson } from '../artifacts/store';
import { decisionSchema, type Decision } from '../domain/approval';
import { type ArtifactRef, refsIn } from '../domain/artifacts';
import {
  type ArmOutcome,
  bestIteration as bestOf,
  type CampaignRecord,
  type CapabilityResult,
  checkpointsSchema,
  type KeptRecord,
  withinBudget,
  type Checkpoint,
  type Iteration,
} from '../domain/results';
import type { Dependencies } from './context';

/** Of checkpoints that are read at once; one is always read. */
const MAX_CHARACTERS = 32_000;

/** A piece of a JSON text, and what all its pieces are the text of. */
export async function keepPiece(
  { store }: Pick<Dependencies, 'store'>,
  { text }: { text: string },
): Promise<ArtifactRef> {
  return keptJson(store, { key: `piece/${sha256(text)}`, producer: 'keepPiece', inputs: [] }, () => text);
}

export async function keepResult(
  { store }: Pick<Dependencies, 'store'>,
  { pieces }: { pieces: ArtifactRef[] },
): Promise<ArtifactRef> {
  const texts = await Promise.all(pieces.map((piece) => readJson(store, piece, z.string())));
  const body = texts.join('');
  return store.put({
    key: `result/${sha256(body)}`,
    producer: 'keepResult',
    inputs: refsIn(JSON.parse(body)),
    mediaType: 'application/json',
    body,
  });
}

/** The next few of a training's checkpoints, `total` in all. */
export async function readCheckpoints(
  { store }: Pick<Dependencies, 'store'>,
  {
    checkpoints,
    from,
  }: {
    checkpoints: ArtifactRef;
    from: number;
  },
): Promise<{ checkpoints: Checkpoint[]; total: number }> {
  const all = await readJson(store, checkpoints, checkpointsSchema);
  let characters = 0;
  const page = all
    .slice(from)
    .filter((one, n) => (characters += JSON.stringify(one).length) < MAX_CHARACTERS || n === 0);
  return { checkpoints: page, total: all.length };
}

/** Of an arm's result, among those within so many training rollouts; null if none is. */
export async function bestIteration(
  { store }: Pick<Dependencies, 'store'>,
  { result, rollouts }: { result: ArtifactRef; rollouts: number },
): Promise<Iteration | null> {
  const { iterations } = await readKept<ArmOutcome>(store, result);
  return bestOf(withinBudget(iterations, rollouts)) ?? null;
}

/** The record that a campaign kept, with what its children came to in the place of their references. */
export async function readRecord(store: ArtifactStore, ref: ArtifactRef): Promise<CampaignRecord> {
  const { capabilities, arms, ...record } = await readKept<KeptRecord>(store, ref);
  return {
    ...record,
    ...(capabilities && {
      capabilities: await Promise.all(
        capabilities.map(async ({ name, workflowId, status, reason, result }): Promise<CapabilityResult> =>
          result
            ? readKept<CapabilityResult>(store, result)
            : { name, workflowId, status, ...(reason !== undefined && { reason }), rounds: [] },
        ),
      ),
    }),
    ...(arms && {
      arms: await Promise.all(
        arms.map(async ({ result, ...arm }) => ({
          ...arm,
          ...(result && (await readKept<ArmOutcome>(store, result))),
        })),
      ),
    }),
  };
}

/** What a workflow kept, as its code made it. */
const readKept = async <T>(store: ArtifactStore, ref: ArtifactRef): Promise<T> =>
  JSON.parse((await store.read(ref)).toString('utf8')) as T;

/** What was decided before of this thing of this workflow; null if nothing was. */
export async function recallDecision(
  { store }: Pick<Dependencies, 'store'>,
  { about, of }: { about: string; of: string },
): Promise<Decision | null> {
  const ref = await store.find(keyOf({ about, of }));
  return ref ? readJson(store, ref, decisionSchema) : null;
}

export async function keepDecision(
  { store }: Pick<Dependencies, 'store'>,
  { about, of, decision }: { about: string; of: string; decision: Decision },
): Promise<void> {
  await store.put({
    key: keyOf({ about, of }),
    producer: 'keepDecision',
    inputs: [],
    mediaType: 'application/json',
    body: canonical(decision),
  });
}

const keyOf = (of: { about: string; of: string }) => `approval/${digest(of)}`;

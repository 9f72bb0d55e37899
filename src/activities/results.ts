/**
 * What workflows came to and what people decided, as artifacts. Results pass through the workflow in pieces, and what is read back is no more
 * than is decided on next, so that no payload grows with a campaign.
 */
import { z } from 'zod';
import { canonical, digest, sha256 } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import { decisionSchema } from '../domain/approval';
import { type ArtifactRef, refsIn } from '../domain/artifacts';
import {
  type ArmOutcome,
  bestIteration,
  type CampaignRecord,
  type CapabilityResult,
  checkpointsSchema,
  type KeptRecord,
  withinBudget,
} from '../domain/results';
import type { Dependencies } from './context';
import { keptJson, readJson } from '../artifacts/json';
import type { ControlActivities } from './types';

/** Of checkpoints that are read at once; one is always read. */
const MAX_CHARACTERS = 32_000;

export function createKeep({
  store,
}: Pick<Dependencies, 'store'>): Pick<
  ControlActivities,
  'keepPiece' | 'keepResult' | 'readCheckpoints' | 'bestIteration'
> {
  return {
    async keepPiece({ text }) {
      return keptJson(store, { key: `piece/${sha256(text)}`, producer: 'keepPiece', inputs: [] }, () => text);
    },

    async keepResult({ pieces }) {
      const texts = await Promise.all(pieces.map((piece) => readJson(store, piece, z.string())));
      const body = texts.join('');
      return store.put({
        key: `result/${sha256(body)}`,
        producer: 'keepResult',
        inputs: refsIn(JSON.parse(body)),
        mediaType: 'application/json',
        body,
      });
    },

    async readCheckpoints({ checkpoints, from }) {
      const all = await readJson(store, checkpoints, checkpointsSchema);
      let characters = 0;
      const page = all
        .slice(from)
        .filter((one, n) => (characters += JSON.stringify(one).length) < MAX_CHARACTERS || n === 0);
      return { checkpoints: page, total: all.length };
    },

    async bestIteration({ result, rollouts }) {
      const { iterations } = await readKept<ArmOutcome>(store, result);
      return bestIteration(withinBudget(iterations, rollouts)) ?? null;
    },
  };
}

/** The record that a campaign kept, with what its children came to in the place of their references. */
export async function readRecord(store: ArtifactStore, ref: ArtifactRef): Promise<CampaignRecord> {
  const { capabilities, arms, ...record } = await readKept<KeptRecord>(store, ref);
  return {
    ...record,
    ...(capabilities && {
      capabilities: await Promise.all(
        capabilities.map(async ({ name, workflowId, status, reason, parts, result }): Promise<CapabilityResult> =>
          result
            ? readKept<CapabilityResult>(store, result)
            : {
                name,
                workflowId,
                status,
                ...(reason !== undefined && { reason }),
                ...(parts && { parts }),
                rounds: [],
              },
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

export function createApproval({
  store,
}: Pick<Dependencies, 'store'>): Pick<ControlActivities, 'recallDecision' | 'keepDecision'> {
  const keyOf = (of: { about: string; of: string }) => `approval/${digest(of)}`;
  return {
    async recallDecision({ about, of }) {
      const ref = await store.find(keyOf({ about, of }));
      return ref ? readJson(store, ref, decisionSchema) : null;
    },

    async keepDecision({ about, of, decision }) {
      await store.put({
        key: keyOf({ about, of }),
        producer: 'keepDecision',
        inputs: [],
        mediaType: 'application/json',
        body: canonical(decision),
      });
    },
  };
}

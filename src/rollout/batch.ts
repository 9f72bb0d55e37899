/**
 * Derives the keys of rollouts and stores batches as artifacts. Two rollouts have the same key exactly if their inputs are the same: everything that can
 * change a record is in its key. The artifact under a batch's key is complete. A batch with broken rollouts is stored under a key of its own, and its
 * chunks stay, so that the next run tries only the broken rollouts again. A setting's index names every stored batch; no entry is removed.
 */
import { sha256, digest } from '../store/hash';
import type { ArtifactStore } from '../store/store';
import { artifactRefSchema, type ArtifactRef } from '../domain/artifacts';
import { breathing } from '../domain/concurrency';
import { isFailure } from '../domain/failures';
import { jsonText, type ToolSchema } from '../domain/messages';
import type { Outcome } from '../domain/outcomes';
import type { Policy, Rollout, ScoredRollout, Sampling } from '../domain/rollout';
import { keepOutcomes, readOutcomes, readRecords, readRollouts, ROLLOUTS_MEDIA_TYPE } from './read';
import type { EnvironmentDescription } from '../domain/environment';
import { contentOf, partsOf } from '../policy/merge';
import type { PlayOptions } from './play';
import type { Shown } from './shown';

/** Changes whenever the engine would make another record from the same inputs. */
const ENGINE_FORMAT = 4;

/** The rollouts of a batch. */
export interface BatchOptions extends Pick<PlayOptions, 'policy' | 'sampling' | 'seed' | 'maxSteps'> {
  tasks: string[];
  /** Attempts at each task: the group size. */
  attempts: number;
  /** The step of a training that the batch is for, where every step plays its own rollouts. */
  step?: number;
  /** The campaign that the batch belongs to; no part of its key. */
  campaign: string;
}

interface BatchInputs extends BatchOptions {
  /** A synthesized environment's version is its module's sha256. */
  environment: Pick<EnvironmentDescription, 'name' | 'version' | 'plugin'>;
  shown: Shown;
}

export interface PlannedRollout {
  key: string;
  task: string;
  attempt: number;
  /** No stored rollout is known to be of the task as it is now. */
  isNew?: true;
}

export interface BatchPlan {
  key: string;
  /**
   * Path of the chunks in which rollouts are stored until the batch is complete. They may also hold rollouts of tasks that could not be opened or that
   * have changed, under their own keys.
   */
  chunks: string;
  /** Digest of all but the tasks and the attempts: batches of one setting may hold the same rollouts. */
  setting: string;
  /** Sorted by task (as text), then by attempt. */
  rollouts: PlannedRollout[];
}

export function planBatch(o: BatchInputs): BatchPlan {
  const { tasks, attempts, shown, campaign, environment, policy, sampling, seed, maxSteps, step } = o;
  const played = digest({
    format: ENGINE_FORMAT,
    environment: [environment.name, environment.version],
    policy: policyKey(policy),
    sampling: [sampling.temperature, sampling.topP, sampling.maxTokens, ...thinkingOf(sampling)],
    seed,
    maxSteps,
    step,
  });
  const planned = (task: string, attempt: number): PlannedRollout => {
    const look = shown.get(task);
    const key = digest([played, look ?? null, task, attempt]);
    return { key, task, attempt, ...(look === undefined && { isNew: true }) };
  };
  const rollouts = [...tasks]
    .sort()
    .flatMap((task) => Array.from({ length: attempts }, (_, attempt) => planned(task, attempt)));
  // The plug-in is not in a rollout's key, which seeds its random numbers, but in all keys of the store.
  const owner = environment.plugin === undefined ? [] : [environment.plugin];
  const setting = digest([...owner, played]);
  const key = `rollouts/${digest([...owner, ...rollouts.map(({ key }) => key)])}`;
  const chunks = `chunks/${campaign}/${digest([setting, rollouts.map(({ task, attempt }) => [task, attempt])])}`;
  return { key, chunks, setting, rollouts };
}

const thinkingOf = ({ thinking = 'kept' }: Sampling) => (thinking === 'kept' ? [] : [thinking]);

function policyKey(policy: Policy): object {
  if ('router' in policy) return { router: policy.router.sha256 };
  const { base, adapters, prompt } = policy;
  return { base, adapters: contentOf(partsOf(adapters)), prompt };
}

export interface StoredBatch {
  ref: ArtifactRef;
  outcomes: readonly Outcome[];
  /** Returns the artifact's records, from memory if the batch was just made. */
  records: () => Promise<Rollout[]>;
}

/** Finds the complete batch. Adds it to the index and removes its chunks, because the run that stored it may have ended before it did. */
export async function findBatch(store: ArtifactStore, plan: BatchPlan): Promise<StoredBatch | undefined> {
  const ref = plan.rollouts.some(({ isNew }) => isNew) ? undefined : await store.find(plan.key);
  if (!ref) return undefined;
  await Promise.all([addToIndex(store, plan, ref), store.files.removeFolder(plan.chunks)]);
  return { ref, outcomes: await keepOutcomes({ store, ref }), records: () => readRecords({ store, ref }) };
}

/** Stores all records, which are in the plan's order, as JSON lines. If another run has finished the batch meanwhile, its artifact stands. */
export async function storeBatch(o: {
  store: ArtifactStore;
  title: string;
  policy: Policy;
  /** The artifacts that the batch derives from besides the policy's adapters or its router. */
  inputs: ArtifactRef[];
  plan: BatchPlan;
  records: Rollout[];
  isComplete: boolean;
}): Promise<StoredBatch> {
  const { store, title, policy, inputs, plan, records, isComplete } = o;
  const body = await jsonLines(records);
  const sha = sha256(body);
  const ref = await store.put({
    key: isComplete ? plan.key : `${plan.key}/incomplete/${sha}`,
    producer: `rollouts: ${title}`,
    inputs: [...inputs, ...('router' in policy ? [policy.router] : policy.adapters.map((adapter) => adapter.ref))],
    mediaType: ROLLOUTS_MEDIA_TYPE,
    body,
  });
  const [outcomes] = await Promise.all([
    keepOutcomes({ store, ref }, ref.sha256 === sha ? records : undefined),
    addToIndex(store, plan, ref),
    isComplete && store.files.removeFolder(plan.chunks),
  ]);
  return { ref, outcomes, records: async () => (ref.sha256 === sha ? records : readRecords({ store, ref })) };
}

export const TOOLS_PRODUCER = 'tools';

/** Stores the tools of an environment, so that a batch leads to them. */
export async function storeTools(store: ArtifactStore, tools: ToolSchema[]): Promise<ArtifactRef[]> {
  if (tools.length === 0) return [];
  const key = `tools/${digest(tools)}`;
  const about = { producer: TOOLS_PRODUCER, inputs: [], mediaType: 'application/json' };
  return [(await store.find(key)) ?? (await store.put({ key, ...about, body: JSON.stringify(tools) }))];
}

async function jsonLines(records: readonly Rollout[]): Promise<Buffer> {
  const lines: Buffer[] = [];
  const breathe = breathing();
  for (const record of records)
    await breathe(lines[lines.push(Buffer.from(`${JSON.stringify(record)}\n`)) - 1]!.length);
  return Buffer.concat(lines);
}

const indexPath = ({ setting }: BatchPlan): string => `batches/${setting}/`;

/** Adds the batch to the index of its setting under its hash: a batch that was damaged and made again has another entry. */
async function addToIndex(store: ArtifactStore, plan: BatchPlan, ref: ArtifactRef): Promise<void> {
  await store.files.create(indexPath(plan) + ref.sha256, JSON.stringify(ref));
}

async function readIndex({ files }: ArtifactStore, plan: BatchPlan): Promise<ArtifactRef[]> {
  const listed = (await files.list(indexPath(plan))).sort((a, b) => a.changedMs - b.changedMs);
  const texts = await Promise.all(listed.map(({ path }) => files.read(path)));
  return texts.flatMap((text) => refText.safeParse(text).data ?? []);
}

const refText = jsonText.pipe(artifactRefSchema);

interface Taken {
  rollouts: Map<string, ScoredRollout>;
  from: ArtifactRef[];
}

/** Returns the plan's rollouts that stored batches hold. If several hold a rollout, the batch that was stored first counts. */
export async function takeStored(store: ArtifactStore, plan: BatchPlan): Promise<Taken> {
  const wanted = new Set(plan.rollouts.flatMap(({ key, isNew }) => (isNew ? [] : [key])));
  const taken: Taken = { rollouts: new Map(), from: [] };
  for (const ref of await readIndex(store, plan)) {
    if (wanted.size === 0) break;
    const held = await heldBy(store, ref, wanted);
    if (held.length > 0) taken.from.push(ref);
    for (const rollout of held) {
      taken.rollouts.set(rollout.key, rollout);
      wanted.delete(rollout.key);
    }
  }
  return taken;
}

/** Returns nothing of a batch that is damaged or gone, so that its rollouts are played again. */
async function heldBy(store: ArtifactStore, ref: ArtifactRef, wanted: ReadonlySet<string>): Promise<ScoredRollout[]> {
  try {
    const outcomes = await readOutcomes({ store, ref });
    if (!outcomes.some(({ status, key }) => status === 'scored' && wanted.has(key))) return [];
    const held: ScoredRollout[] = [];
    for await (const record of readRollouts({ store, ref }))
      if (record.status === 'scored' && wanted.has(record.key)) held.push(record);
    return held;
  } catch (error) {
    if (isFailure(error, 'ArtifactDamaged')) return [];
    throw error;
  }
}

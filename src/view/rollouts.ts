/**
 * An index of all rollouts of a campaign: the values that lists filter by and show, and the place of each conversation in the store. Invariant: a batch
 * never changes; a running campaign only adds batches.
 */
import { z } from 'zod';
import { keysOf } from '../store/campaign-index';
import { readJson, type ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { beginningOf, type Discovery, discoverySchema, type LabelPass, labelPassSchema } from '../domain/capability';
import { breathing } from '../domain/concurrency';
import { isFailure } from '../domain/failures';
import { getOrMake } from '../domain/maps';
import { type Message, type ToolSchema, toolSchema } from '../domain/messages';
import { isSuccess, type Rollout } from '../domain/rollout';
import { lackingIn, readingsOf } from '../domain/selection';
import { TOOLS_PRODUCER } from '../rollout/batch';
import { readRollouts } from '../rollout/read';
import type { ListedRollout, ShownRollout } from './api';

/** Characters of a conversation's beginning that a list is searched by. */
const SEARCHED = 1000;
/** Characters of a conversation's beginning that a list shows. */
const SNIPPET = 120;

/** Rollouts that were made together; each has its place in the batch. */
export interface IndexedBatch extends BatchPurpose {
  ref: ArtifactRef;
  title: string;
  inputs: ArtifactRef[];
  /** The rewards of those that are scored. */
  rewards: number[];
}

export interface IndexedRollout extends ListedRollout {
  batch: IndexedBatch;
  outcome: 'success' | 'failed' | 'broken';
  /** The option that the router chose. */
  chosen?: string;
  /** The beginning of the conversation in lower case, without the system message. */
  text: string;
  /** Another batch holds this rollout too and its row is shown instead: the first scored one. */
  isRepeated: boolean;
}

interface BatchPurpose {
  /** The purpose in few words; `what` is exact. */
  purpose: string;
  what: string;
  /** The capability, the arm or the policy that it is of. */
  of: string;
}

/** Parses the title that workflows and trainings give a batch. */
function purposeOf(title: string): BatchPurpose {
  const [, evaluated, policy] = /^(outcome matrix|test): (.*)$/s.exec(title) ?? [];
  if (evaluated && policy) return { purpose: evaluated, what: evaluated, of: policy };
  const [, of, what = '', purpose] = /^(.*?): ((calibration|training|held out).*)$/s.exec(title) ?? [];
  if (of && purpose) return { purpose, what, of };
  const isHeldOut = title.includes('held-out');
  return { purpose: isHeldOut ? 'held out' : title, what: title, of: title.startsWith('base') ? 'base' : '' };
}

export function createIndex({ store, campaign }: { store: ArtifactStore; campaign: string }) {
  const batches = new Map<string, IndexedBatch>();
  const all: IndexedRollout[] = [];
  const byId = new Map<string, IndexedRollout>();
  const passes = new Map<string, LabelPass>();
  let readings = readingsOf([]);
  const discoveries = new Map<string, Discovery>();
  let refreshing: Promise<void> | undefined;
  let version = 0;

  /** Returns the capabilities that at least one pass labels as lacking in a rollout, with the passes' votes. */
  const lackingOf = (id: string) =>
    [...readings].flatMap(([name, of]) => {
      const own = of.get(id) ?? [];
      const found = lackingIn(own);
      return found.lacking > 0 ? [{ name, passes: own.length, ...found }] : [];
    });

  /** Returns the capabilities that at least half of the rollout's passes label as lacking. */
  const labelsOf = (id: string): string[] =>
    lackingOf(id).flatMap(({ name, lacking, passes: all }) => (2 * lacking >= all ? [name] : []));

  async function read(key: string, ref: ArtifactRef): Promise<void> {
    const { producer, inputs } = await store.provenance(ref);
    const title = producer.replace(/^rollouts: /, '');
    const batch: IndexedBatch = { ref, title, inputs, rewards: [], ...purposeOf(title) };
    const rows: IndexedRollout[] = [];
    for await (const rollout of readRollouts({ store, ref })) rows.push(rowOf(rollout, batch));
    batches.set(key, batch);
    version += 1;
    for (const row of rows) {
      if (row.reward !== undefined) batch.rewards.push(row.reward);
      const first = byId.get(row.id);
      const isBetter = first?.outcome === 'broken' && row.outcome !== 'broken';
      row.labels = first?.labels ?? labelsOf(row.id);
      row.isRepeated = first !== undefined && !isBetter;
      if (first && isBetter) first.isRepeated = true;
      if (!row.isRepeated) byId.set(row.id, row);
      all.push(row);
    }
  }

  /** The new artifacts of a kind. */
  async function* unknown(keys: readonly string[], kind: string, known: { has(key: string): boolean }) {
    for (const key of keys.filter((one) => one.startsWith(`${kind}/`) && !known.has(one))) {
      const ref = await store.find(key);
      if (ref) yield [key, ref] as const;
    }
  }

  async function extend(): Promise<void> {
    const keys = await keysOf(store.files, campaign);
    for await (const [key, ref] of unknown(keys, 'rollouts', batches))
      await read(key, ref).catch((error: unknown) => {
        // A damaged batch is skipped: it is rebuilt later, or can't be read.
        if (!isFailure(error, 'ArtifactDamaged')) throw error;
      });
    for await (const [key, ref] of unknown(keys, 'candidates', discoveries))
      discoveries.set(key, await readJson(store, ref, discoverySchema));
    const before = passes.size;
    for await (const [key, ref] of unknown(keys, 'labels', passes))
      passes.set(key, await readJson(store, ref, labelPassSchema));
    if (passes.size === before) return;
    readings = readingsOf([...passes.values()]);
    version += 1;
    for (const one of all) one.labels = labelsOf(one.id);
  }

  /** Their records, a batch after the other. */
  async function* each(
    rollouts: readonly IndexedRollout[],
  ): AsyncGenerator<{ one: IndexedRollout; rollout: Rollout }, void, void> {
    const wanted = new Map<IndexedBatch, Map<string, IndexedRollout>>();
    for (const one of rollouts) getOrMake(wanted, one.batch, () => new Map<string, IndexedRollout>()).set(one.id, one);
    for (const [batch, ids] of wanted)
      for await (const rollout of readRollouts({ store, ref: batch.ref })) {
        const one = ids.get(rollout.key);
        if (one) yield { one, rollout };
      }
  }

  return {
    /** Reads new batches. */
    refresh: (): Promise<void> => (refreshing ??= extend().finally(() => (refreshing = undefined))),
    all: (): readonly IndexedRollout[] => all,
    batches: (): IndexedBatch[] => [...batches.values()],
    /** Changes with what it holds. */
    version: () => version,
    /** Returns the rollout whose id begins with `start` (8 characters or more), if it is the only one. */
    find(start: string): IndexedRollout | undefined {
      const known = byId.get(start);
      if (known || start.length < 8) return known;
      const [only, another] = [...byId.keys()].filter((id) => id.startsWith(start));
      return only === undefined || another !== undefined ? undefined : byId.get(only);
    },
    lackingOf,
    beginningOf: (id: string) => beginningOf([...passes.values()].flatMap(({ failures }) => failures?.[id] ?? [])),
    /** The steps of a rollout that candidates cite. */
    citedIn: (id: string): ShownRollout['cited'] =>
      [...discoveries.values()]
        .flatMap(({ candidates }) => candidates)
        .flatMap(({ name, citations = [] }) =>
          citations.flatMap(({ rollout, message, says }) =>
            rollout === id ? [{ message, says: `${name}: ${says}` }] : [],
          ),
        ),
    async read({ id, batch }: IndexedRollout): Promise<Rollout> {
      for await (const rollout of readRollouts({ store, ref: batch.ref })) if (rollout.key === id) return rollout;
      throw new Error(`${batch.ref.uri} holds no rollout ${id}`);
    },
    each,
    /** Returns the ids of rollouts that contain a text (in lower case) outside the system message, or in the error of a failed rollout. */
    async saying(text: string, rollouts: readonly IndexedRollout[]): Promise<Set<string>> {
      const found = new Set<string>();
      const breathe = breathing();
      for await (const { rollout } of each(rollouts)) {
        const said = rollout.status === 'scored' ? saidIn(rollout.messages) : rollout.error.message.toLowerCase();
        if (said.includes(text)) found.add(rollout.key);
        await breathe(said.length);
      }
      return found;
    },
  };
}
export type RolloutIndex = ReturnType<typeof createIndex>;

const saidIn = (messages: readonly Message[]): string =>
  messages
    .flatMap((one) => (one.role === 'system' ? [] : [one.content, ...calledIn(one)]))
    .join('\n')
    .toLowerCase();
const calledIn = (message: Message): string[] =>
  'toolCalls' in message && message.toolCalls ? message.toolCalls.map((call) => JSON.stringify(call)) : [];

function rowOf(rollout: Rollout, batch: IndexedBatch): IndexedRollout {
  const { key: id, task, attempt } = rollout;
  const row = { id, batch, purpose: batch.what, of: batch.of, task, attempt, labels: [], isRepeated: false };
  if (rollout.status === 'broken') {
    const { type: stop, message } = rollout.error;
    const text = message.slice(0, SEARCHED).toLowerCase();
    return { ...row, outcome: 'broken', stop, steps: 0, text, snippet: message.slice(0, SNIPPET) };
  }
  const { reward, stopReason: stop, steps, messages, branch, routed } = rollout;
  return {
    ...{ ...row, outcome: isSuccess({ reward }) ? 'success' : 'failed', reward, stop, steps },
    ...(branch !== undefined && { branch }),
    ...(routed && { chosen: routed.chosen }),
    text: saidIn(messages).slice(0, SEARCHED),
    snippet: messages.find(({ role }) => role !== 'system')?.content.slice(0, SNIPPET) ?? '',
  };
}

/** The tools that the batch's environment offers. */
export async function toolsOf(store: ArtifactStore, { inputs }: IndexedBatch): Promise<ToolSchema[]> {
  for (const ref of inputs)
    if ((await store.provenance(ref)).producer === TOOLS_PRODUCER) return readJson(store, ref, z.array(toolSchema));
  return [];
}

export const listed = (one: IndexedRollout): ListedRollout => ({
  ...one,
  ...{ batch: undefined, chosen: undefined, text: undefined, isRepeated: undefined },
});

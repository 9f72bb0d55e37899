/**
 * An index of all rollouts of a campaign: what a list filters by and shows, and where each conversation lies in the store. Invariant: a batch never changes, so what
 * was read of it once is kept under the home, and a campaign that runs adds batches alone.
 */
import { appendFile, mkdir, readFile, truncate } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { keysOf } from '../store/campaign-index';
import { readJson, type ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { beginningOf, discoverySchema, type LabelPass, labelPassSchema } from '../domain/capability';
import { breathing } from '../domain/concurrency';
import { isFailure } from '../domain/failures';
import { type Message, type ToolSchema, toolSchema } from '../domain/messages';
import { isSuccess, type Rollout } from '../domain/rollout';
import { lackingIn, readingsOf } from '../domain/selection';
import { TOOLS_PRODUCER } from '../rollout/batch';
import { readRollouts } from '../rollout/read';
import type { ListedRollout } from './api';

/** Raised whenever other rows would be made of the same batch: an index of another form is made anew. */
const FORM = 4;
/** Characters of what was said, by which a list is searched. */
const SEARCHED = 1000;
/** Characters of a conversation's beginning that a list shows. */
const SNIPPET = 120;

interface Row {
  id: string;
  task: string;
  attempt: number;
  reward?: number;
  stop: string;
  steps: number;
  /** Of an environment whose instances have branches. */
  branch?: string;
  /** What the router gave it to. */
  chosen?: string;
  /** In lower case: how the conversation begins, without what the policy is told. */
  text: string;
  /** The beginning of its first message after the system prompt. */
  snippet: string;
}

/** A line of the file. */
interface KeptBatch {
  form: typeof FORM;
  key: string;
  ref: ArtifactRef;
  title: string;
  inputs: ArtifactRef[];
  rows: Row[];
}

/** Undefined of a line that was cut off, or is of another form. This program alone writes the file: its rows, which are many, are taken as they are. */
function batchIn(line: string): KeptBatch | undefined {
  try {
    const batch = JSON.parse(line) as KeptBatch | null;
    return batch?.form === FORM ? batch : undefined;
  } catch {
    return undefined;
  }
}

/** Rollouts that were made together; each has its place in the batch. */
export type IndexedBatch = KeptBatch & BatchPurpose;

export interface IndexedRollout extends Row {
  batch: IndexedBatch;
  outcome: 'success' | 'failed' | 'broken';
  /** Another row is shown of what several batches hold: the first that is scored. */
  isRepeated: boolean;
  labels: string[];
}

/** A message that somebody points at, and why. */
export interface Step {
  message: number;
  says: string;
}

interface BatchPurpose {
  /** What it is for, in few words, and exactly. */
  purpose: string;
  what: string;
  /** The capability, the arm or the policy that it is of. */
  of: string;
}

/** Returns the title of a batch. */
export const titleOf = ({ producer }: { producer: string }): string => producer.replace(/^rollouts: /, '');

/** By its title, as workflows and trainings give it. */
export function purposeOf(title: string): BatchPurpose {
  const [, evaluated, policy] = /^(outcome matrix|test): (.*)$/s.exec(title) ?? [];
  if (evaluated && policy) return { purpose: evaluated, what: evaluated, of: policy };
  const [, of, what = '', purpose] = /^(.*?): ((calibration|training|held out).*)$/s.exec(title) ?? [];
  if (of && purpose) return { purpose, what, of };
  const isHeldOut = title.includes('held-out');
  return { purpose: isHeldOut ? 'held out' : title, what: title, of: title.startsWith('base') ? 'base' : '' };
}

/** `file`: where the index is kept; a home that can't be written to has it made anew each time. */
export function createIndex({ store, campaign, file }: { store: ArtifactStore; campaign: string; file: string }) {
  const batches = new Map<string, IndexedBatch>();
  const all: IndexedRollout[] = [];
  const byId = new Map<string, IndexedRollout>();
  const passes = new Map<string, LabelPass>();
  let readings = readingsOf([]);
  /** Steps that candidates cite, by rollout, of each discovery. */
  const cited = new Map<string, Map<string, Step[]>>();
  let refreshing: Promise<void> | undefined;
  let version = 0;

  function add(batch: KeptBatch): void {
    const known: IndexedBatch = { ...batch, ...purposeOf(batch.title) };
    batches.set(batch.key, known);
    version += 1;
    for (const row of batch.rows) {
      const { reward } = row;
      const outcome = reward === undefined ? 'broken' : isSuccess({ reward }) ? 'success' : 'failed';
      const first = byId.get(row.id);
      const isBetter = first?.outcome === 'broken' && outcome !== 'broken';
      const labels = first?.labels ?? labelsOf(row.id);
      const one: IndexedRollout = {
        ...row,
        batch: known,
        outcome,
        isRepeated: first !== undefined && !isBetter,
        labels,
      };
      if (first && isBetter) first.isRepeated = true;
      if (!one.isRepeated) byId.set(row.id, one);
      all.push(one);
    }
  }

  /** By capability, what passes say of it, where one of them says that it is lacking. */
  const lackingOf = (id: string) =>
    [...readings].flatMap(([name, of]) => {
      const own = of.get(id) ?? [];
      const { lacking, message } = lackingIn(own);
      const reason = lacking.find((one) => one.message === message)?.reason;
      return lacking.length > 0 ? [{ name, lacking: lacking.length, passes: own.length, message, reason }] : [];
    });

  /** Those that at least half of the passes that look at it call lacking. */
  const labelsOf = (id: string): string[] =>
    lackingOf(id).flatMap(({ name, lacking, passes: all }) => (2 * lacking >= all ? [name] : []));

  /** What is kept, as far as it is whole: an end that was cut off goes. */
  async function load(): Promise<void> {
    const body = await readFile(file).catch(() => undefined);
    if (!body) return;
    let start = 0;
    for (let end = body.indexOf(10); end >= 0; end = body.indexOf(10, start)) {
      const batch = batchIn(body.toString('utf8', start, end));
      if (!batch) break;
      add(batch);
      start = end + 1;
    }
    if (start < body.length) await truncate(file, start).catch(() => undefined);
  }

  async function read(key: string, ref: ArtifactRef): Promise<void> {
    const origin = await store.provenance(ref);
    const rows: Row[] = [];
    for await (const rollout of readRollouts({ store, ref })) rows.push(rowOf(rollout));
    const batch: KeptBatch = { form: FORM, key, ref, title: titleOf(origin), inputs: origin.inputs, rows };
    add(batch);
    try {
      await mkdir(dirname(file), { recursive: true });
      await appendFile(file, `${JSON.stringify(batch)}\n`);
    } catch {
      // Somebody else's home may allow reading only.
    }
  }

  /** What the analyst has come to since; false where that is nothing. */
  async function analysed(keys: readonly string[]): Promise<boolean> {
    const before = passes.size + cited.size;
    for (const key of keys.filter((one) => one.startsWith('labels/') && !passes.has(one))) {
      const ref = await store.find(key);
      if (ref) passes.set(key, await readJson(store, ref, labelPassSchema));
    }
    for (const key of keys.filter((one) => one.startsWith('candidates/') && !cited.has(one))) {
      const ref = await store.find(key);
      if (!ref) continue;
      const steps = new Map<string, Step[]>();
      for (const { name, citations = [] } of (await readJson(store, ref, discoverySchema)).candidates)
        for (const { rollout, message, says } of citations)
          steps.set(rollout, [...(steps.get(rollout) ?? []), { message, says: `${name}: ${says}` }]);
      cited.set(key, steps);
    }
    return passes.size + cited.size > before;
  }

  async function extend(): Promise<void> {
    if (version === 0) await load();
    const keys = await keysOf(store.files, campaign);
    for (const key of keys.filter((one) => one.startsWith('rollouts/') && !batches.has(one)))
      try {
        const ref = await store.find(key);
        if (ref) await read(key, ref);
      } catch (error) {
        // A batch that is damaged is made anew, or is not there to be read.
        if (!isFailure(error, 'ArtifactDamaged')) throw error;
      }
    if (!(await analysed(keys))) return;
    readings = readingsOf([...passes.values()]);
    version += 1;
    for (const one of all) one.labels = labelsOf(one.id);
  }

  /** Their records, a batch after the other. */
  async function* each(
    rollouts: readonly IndexedRollout[],
  ): AsyncGenerator<{ one: IndexedRollout; rollout: Rollout }, void, void> {
    const wanted = new Map<IndexedBatch, Map<string, IndexedRollout>>();
    for (const one of rollouts) {
      const known = wanted.get(one.batch) ?? new Map<string, IndexedRollout>();
      wanted.set(one.batch, known.set(one.id, one));
    }
    for (const [batch, ids] of wanted)
      for await (const rollout of readRollouts({ store, ref: batch.ref })) {
        const one = ids.get(rollout.key);
        if (one) yield { one, rollout };
      }
  }

  return {
    /** Reads what has come since. */
    refresh: (): Promise<void> => (refreshing ??= extend().finally(() => (refreshing = undefined))),
    all: (): readonly IndexedRollout[] => all,
    batches: (): IndexedBatch[] => [...batches.values()],
    /** Changes with what it holds. */
    version: () => version,
    /** That whose id begins so, if it is the only one. */
    find(start: string): IndexedRollout | undefined {
      const known = byId.get(start);
      if (known || start.length < 8) return known;
      const [only, another] = [...byId.keys()].filter((id) => id.startsWith(start));
      return only === undefined || another !== undefined ? undefined : byId.get(only);
    },
    lackingOf,
    beginningOf: (id: string) => beginningOf([...passes.values()].flatMap(({ failures }) => failures?.[id] ?? [])),
    citedIn: (id: string): Step[] => [...cited.values()].flatMap((steps) => steps.get(id) ?? []),
    async read({ id, batch }: IndexedRollout): Promise<Rollout> {
      for await (const rollout of readRollouts({ store, ref: batch.ref })) if (rollout.key === id) return rollout;
      throw new Error(`${batch.ref.uri} holds no rollout ${id}`);
    },
    each,
    /** Ids of those that say a text anywhere. */
    async saying(text: string, rollouts: readonly IndexedRollout[]): Promise<Set<string>> {
      const found = new Set<string>();
      const breathe = breathing();
      for await (const { rollout } of each(rollouts)) {
        if (rollout.status !== 'scored') continue;
        const said = saidIn(rollout.messages);
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

function rowOf(rollout: Rollout): Row {
  const { key: id, task, attempt } = rollout;
  if (rollout.status === 'broken') {
    const { type, message } = rollout.error;
    const text = message.slice(0, SEARCHED).toLowerCase();
    return { id, task, attempt, stop: type, steps: 0, text, snippet: message.slice(0, SNIPPET) };
  }
  const { reward, stopReason: stop, steps, messages, branch, routed } = rollout;
  const by = { ...(branch !== undefined && { branch }), ...(routed && { chosen: routed.chosen }) };
  const text = saidIn(messages).slice(0, SEARCHED);
  const snippet = messages.find(({ role }) => role !== 'system')?.content.slice(0, SNIPPET) ?? '';
  return { id, task, attempt, reward, stop, steps, ...by, text, snippet };
}

/** The tools that the batch's environment offers. */
export async function toolsOf(store: ArtifactStore, { inputs }: IndexedBatch): Promise<ToolSchema[]> {
  for (const ref of inputs)
    if ((await store.provenance(ref)).producer === TOOLS_PRODUCER) return readJson(store, ref, z.array(toolSchema));
  return [];
}

export function listed(one: IndexedRollout): ListedRollout {
  const { id, batch, task, attempt, outcome, reward, stop, steps, branch, labels, snippet } = one;
  return {
    ...{ id, purpose: batch.what, of: batch.of, task, attempt, outcome, stop, steps, labels, snippet },
    ...(reward !== undefined && { reward }),
    ...(branch !== undefined && { branch }),
  };
}

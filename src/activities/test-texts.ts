/**
 * The texts of a target's test tasks. Invariant: one set for each version of a target, kept in the store: where a model plays the user, asking again
 * would give others.
 */
import { z } from 'zod';
import { digest } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import type { Environment, Message, ResetResult } from '../domain/environment';
import type { Work } from '../domain/work';
import { forEachBounded } from '../rollout/pool';
import { normalised } from '../sandbox/leakage';
import { keptJson, readJson } from './context';

/** What the user asks for, whatever the turn: the task's text. */
export const taskText = (messages: Message[]): string =>
  normalised(messages.flatMap((message) => (message.role === 'user' ? [message.content] : [])).join(' '));

/** Where a model plays the user, each text is asked of it: once per worker, and several at a time. All who wait hear of the progress. */
const known = new WeakMap<Environment, { texts: Promise<Map<string, string>>; waiting: Set<Work['progress']> }>();
const AT_ONCE = 8;
/** Changes whenever other texts would be read. */
const VERSION = '1';

interface Asked {
  store: ArtifactStore;
  environment: Environment;
}

/** The task texts of the whole test split of the target, each with a task that has it. */
export async function testTexts({ progress, ...asked }: Asked & Pick<Work, 'progress'>): Promise<Map<string, string>> {
  const { texts, waiting } = known.get(asked.environment) ?? begun(asked);
  waiting.add(progress);
  return texts.finally(() => waiting.delete(progress));
}

function begun({ store, environment }: Asked) {
  const waiting = new Set<Work['progress']>();
  const texts = keptTexts({
    store,
    environment,
    progress: (done, total) => waiting.forEach((progress) => progress(done, total)),
  });
  known.set(environment, { texts, waiting });
  texts.catch(() => known.delete(environment));
  return { texts, waiting };
}

async function keptTexts({
  store,
  environment,
  progress,
}: Asked & Pick<Work, 'progress'>): Promise<Map<string, string>> {
  const { name, version } = await environment.describe();
  const key = `test-texts/${digest({ version: VERSION, environment: [name, version] })}`;
  const ref = await keptJson(store, { key, producer: 'testTexts', inputs: [] }, () =>
    readTestTexts({ store, environment, progress }, key),
  );
  await store.removeJournal(key);
  return new Map(await readJson(store, ref, z.array(z.tuple([z.string(), z.string()]))));
}

/** What was asked for before a failure is not asked for again. */
async function readTestTexts(
  { store, environment, progress }: Asked & Pick<Work, 'progress'>,
  key: string,
): Promise<[text: string, task: string][]> {
  const tasks = await environment.tasks('test');
  const journal = await store.journal(key);
  try {
    const texts = new Map(journal.records() as ReadonlyMap<string, string>);
    await forEachBounded({
      items: tasks.filter(({ id }) => !texts.has(id)),
      concurrency: AT_ONCE,
      work: async ({ id }) => {
        const text = taskText((await startOf(environment, id)).messages);
        await journal.append(id, text);
        texts.set(id, text);
        progress(texts.size, tasks.length);
      },
    });
    return [...new Map(tasks.map(({ id }) => [texts.get(id)!, id]))];
  } finally {
    await journal.close();
  }
}

/** The first messages of a task, of an episode that ends there. */
export async function startOf(environment: Environment, task: string): Promise<ResetResult> {
  const episode = await environment.reset({ id: task, seed: 0 });
  await episode.close();
  return episode.start;
}

/** Turns a task set into task ids, the same for every step. Seeds whose instances contain the text of a test task are left out. */
import { z } from 'zod';
import { digest } from '../store/hash';
import { type ArtifactStore, keptJson, readJson } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { Environment } from '../domain/environment';
import type { Message } from '../domain/messages';
import { OutsideFailure } from '../domain/failures';
import { type EnvironmentSpec, modulesOf } from '../domain/kinds';
import { getOrMake } from '../domain/maps';
import type { Work } from '../domain/work';
import { planSchema } from '../environments/split';
import { forEachBounded } from '../domain/concurrency';
import { leaksOf, messageHash, normalised } from '../sandbox/leakage';
import { withModule } from '../sandbox/module';
import { mixedTasks, seedsOfEach, seedTasks, TOGETHER } from '../domain/seeds';
import { lookAt, startOf } from '../rollout/shown';
import type { Purpose } from '../domain/rollout';
import type { Dependencies } from './context';
import type { Environments } from './environments';
import { activitySignal, markProgress, progress } from './heartbeat';
import type { LearnerInput, RollOutInput } from './types';

type Of = Pick<RollOutInput, 'environment' | 'tasks'>;

export async function resolveTasks(
  o: { store: ArtifactStore; environments: Environments; progress?: Work['progress'] },
  { environment, tasks: set }: Of,
): Promise<string[]> {
  if (set.kind === 'plan') return (await readJson(o.store, set.plan, planSchema))[set.part];
  const { from, count, unlike } = set;
  const modules = modulesOf(environment);
  const progress = o.progress ?? (() => undefined);
  const without = async (module: ArtifactRef | undefined, needed: number): Promise<number[]> => {
    if (!module || !unlike) return [];
    return leftOut({ ...o, progress }, { module, unlike, range: { from, count: needed } });
  };
  if (modules.length > 1) {
    const each = seedsOfEach(modules.length, count);
    const of = await Promise.all(modules.map(async (module) => ({ from, without: await without(module, each) })));
    return mixedTasks({ of, count });
  }
  return seedTasks({ from, count, without: await without(modules[0], count) });
}

/** Returns the artifacts that a batch derives from besides its policy: the environment's modules, the plan. */
export function inputsOf({ environment, tasks }: Of): ArtifactRef[] {
  return [...modulesOf(environment), ...(tasks.kind === 'plan' ? [tasks.plan] : [])];
}

/** Opens the environment of a training. Returns its tasks, their part of the training's key, and the settings of the learner and of all batches. */
export async function openTraining(
  { store, environments }: Pick<Dependencies, 'store' | 'environments'>,
  input: LearnerInput,
) {
  const { campaign, name: owner, budget, seed, maxSteps, concurrency, maxAttempts } = input;
  const read = environments.paidBy({ campaign, budget, step: TEST_TEXTS });
  const tasks = await resolveTasks({ store, environments: read }, input);
  const step: Purpose = 'training';
  const environment = await environments.paidBy({ campaign, budget, step }).get(input.environment);
  const { name, version, plugin, policy } = await environment.describe();
  const signal = activitySignal();
  const shown = await lookAt({ environment, tasks, seed, campaign, concurrency, signal });
  return {
    ...{ tasks, policy },
    run: { campaign, name: owner, limits: input, signal, show: progress, onDurable: markProgress },
    environment: { environment: [name, version, ...tasks.map((task) => shown.get(task) ?? null)], plugin },
    batch: { campaign, environment, seed, maxSteps, concurrency, maxAttempts, inputs: inputsOf(input) },
  };
}

/** Changes whenever other seeds would be left out. */
const EXCLUDED_VERSION = '2';

/** Returns the seeds of a module that are not used, since they or their twins contain a test task's text. */
export async function leftOut(
  o: { store: ArtifactStore; environments: Environments; progress: Work['progress'] },
  { module, unlike, range }: { module: ArtifactRef; unlike: EnvironmentSpec; range: { from: number; count: number } },
): Promise<number[]> {
  const { store, progress } = o;
  const forbidden = await forbiddenOf(o, unlike);
  if (forbidden.length === 0 || range.count === 0) return [];
  const key = `left-out/${digest({ version: EXCLUDED_VERSION, module: module.sha256, forbidden, range })}`;
  const ref = await keptJson(store, { key, producer: 'leftOut', inputs: [module] }, async () => {
    const seeds: number[] = [];
    await withModule((await store.read(module)).toString('utf8'), async (opened) => {
      let usable = 0;
      for (let seed = range.from; usable < range.count; seed += TOGETHER) {
        const pair = Array.from({ length: TOGETHER }, (_, n) => seed + n);
        const leaks = await leaksOf(opened, { seeds: pair, forbidden });
        if (leaks.length === 0) usable += TOGETHER;
        else seeds.push(...pair);
        if (seeds.length > range.count) {
          const problem = `${seeds.length} seeds from ${range.from} on say the text of a test task`;
          const fix = `${range.count} others are needed: word the instances otherwise`;
          throw new OutsideFailure('BadEnvironment', `${problem}, and ${fix}`);
        }
        progress(Math.min(usable, range.count), range.count);
      }
    });
    return seeds;
  });
  return readJson(store, ref, z.array(z.number()));
}

/** messageHash() of the texts of a target's test tasks, sorted. */
export async function forbiddenOf(
  o: { store: ArtifactStore; environments: Environments; progress: Work['progress'] },
  target: EnvironmentSpec,
): Promise<string[]> {
  const texts = await testTexts({ ...o, environment: await o.environments.get(target) });
  return [...new Set([...texts.keys()].map(messageHash))].sort();
}

export const taskText = (messages: Message[]): string =>
  normalised(messages.flatMap((message) => (message.role === 'user' ? [message.content] : [])).join(' '));

/** Texts by environment. A model that plays the user is asked for each text once per worker. */
const known = new WeakMap<Environment, Promise<Map<string, string>>>();
const AT_ONCE = 8;
/** An episode that is opened only to read its first messages. */
const SEED = 0;
/** Row of the report's costs for the simulated users of these episodes. */
export const TEST_TEXTS = 'texts of the test tasks';
/** Part of the key: increase it when other texts would be read. */
const TEXTS_VERSION = '2';

interface Asked extends Pick<Work, 'progress'> {
  store: ArtifactStore;
  environment: Environment;
}

/** The task texts of the whole test split of the target, each with a task that has it. */
export function testTexts(asked: Asked): Promise<Map<string, string>> {
  const { environment } = asked;
  const texts = getOrMake(known, environment, () => keptTexts(asked));
  texts.catch(() => known.delete(environment));
  return texts;
}

/** Stores the text of each task, so that a retry or another worker does not ask for it again. */
async function keptTexts({ store, environment, progress }: Asked): Promise<Map<string, string>> {
  const tasks = await environment.tasks('test');
  const untold = tasks.flatMap(({ id, text }) => (text === undefined ? [id] : []));
  const shown = await lookAt({ environment, tasks: untold, seed: SEED, concurrency: AT_ONCE });
  const texts = new Map(tasks.map(({ id, text = '' }) => [id, normalised(text)]));
  let done = tasks.length - untold.length;
  await forEachBounded({
    items: untold,
    concurrency: AT_ONCE,
    work: async (id) => {
      const read = async () => taskText((await startOf(environment)({ id, seed: SEED })).messages);
      const look = shown.get(id);
      const key = `test-text/${digest({ version: TEXTS_VERSION, shown: look })}`;
      const kept = look && (await keptJson(store, { key, producer: 'testTexts', inputs: [] }, read));
      texts.set(id, kept ? await readJson(store, kept, z.string()) : await read());
      progress(++done, tasks.length);
    },
  });
  return new Map(tasks.map(({ id }) => [texts.get(id)!, id]));
}

/**
 * Leakage check: no capability text, no evidence, no synthesized task that was used and no hint there may contain a test task's text. Texts are compared
 * as words, without case.
 */
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { sandboxSpec } from '../domain/environment-spec';
import type { Environment, Message, ResetResult } from '../domain/environment';
import { isFailure } from '../domain/failures';
import type { Work } from '../domain/progress';
import type { CampaignRecord } from '../domain/results';
import type { ReportDraft } from '../domain/report';
import { CALIBRATION_SEEDS, HELD_OUT_SEEDS, seedTasks, TRAINING_SEEDS } from '../sandbox/seeds';
import { forEachBounded } from '../rollout/pool';
import { readRollouts } from '../rollout/read';
import type { EnvironmentPool } from './environments';

const normalise = (text: string): string => text.toLowerCase().split(/\s+/).filter(Boolean).join(' ');

/** What the user asks for, whatever the turn: the task's text. */
export const taskText = (messages: Message[]): string =>
  normalise(messages.flatMap((message) => (message.role === 'user' ? [message.content] : [])).join(' '));

/** Where a model plays the user, each text is asked of it: once per worker, and several at a time. All who wait hear of the progress. */
const known = new WeakMap<Environment, { texts: Promise<Map<string, string>>; waiting: Set<Work['progress']> }>();
const AT_ONCE = 8;

/** The task texts of the whole test split of the target. */
export async function testTexts(environment: Environment, progress: Work['progress']): Promise<Map<string, string>> {
  const { texts, waiting } = known.get(environment) ?? begun(environment);
  waiting.add(progress);
  return texts.finally(() => waiting.delete(progress));
}

function begun(environment: Environment) {
  const waiting = new Set<Work['progress']>();
  const texts = readTestTexts(environment, (done, total) => waiting.forEach((progress) => progress(done, total)));
  known.set(environment, { texts, waiting });
  texts.catch(() => known.delete(environment));
  return { texts, waiting };
}

async function readTestTexts(environment: Environment, progress: Work['progress']): Promise<Map<string, string>> {
  const tasks = await environment.tasks('test');
  const texts = new Map<string, string>();
  await forEachBounded({
    items: tasks,
    concurrency: AT_ONCE,
    work: async ({ id }) => {
      texts.set(id, await firstText(environment, id));
      progress(texts.size, tasks.length);
    },
  });
  return new Map(tasks.map(({ id }) => [texts.get(id)!, id]));
}

/** The test task whose whole text stands in `text`, if there is one. */
export function leaked(tests: Map<string, string>, text: string): string | undefined {
  for (const [test, task] of tests) if (` ${text} `.includes(` ${test} `)) return task;
  return undefined;
}

async function startOf(environment: Environment, task: string): Promise<ResetResult> {
  const episode = await environment.reset({ id: task, seed: 0 });
  await episode.close();
  return episode.start;
}

const firstText = async (environment: Environment, task: string): Promise<string> =>
  taskText((await startOf(environment, task)).messages);

/** Undefined where the module fails on the seed: it was never played. */
async function seedStart(environment: Environment, task: string): Promise<ResetResult | undefined> {
  try {
    return await startOf(environment, task);
  } catch (error) {
    if (isFailure(error, 'BadEnvironment')) return undefined;
    throw error;
  }
}

export async function checkLeakage(o: {
  store: ArtifactStore;
  environments: EnvironmentPool;
  record: CampaignRecord;
  progress?: Work['progress'];
}): Promise<NonNullable<ReportDraft['leakage']> | undefined> {
  const { environments, record, progress = () => undefined } = o;
  const { campaign, selection, capabilities = [] } = record;
  if (!selection) return undefined;
  const target = await environments.get(campaign.target);
  const tests = await testTexts(target, progress);
  const texts: { where: string; text: string }[] = [];
  for (const { candidate } of selection.selected) {
    texts.push({ where: `capability ${candidate.name}`, text: normalise(`${candidate.name} ${candidate.definition}`) });
  }
  const from: ArtifactRef[] = [selection.candidates];
  const { calibration, training, validation } = campaign;
  for (const { name, rounds, trained } of capabilities) {
    // What failed its self-test was never played, and may not even load.
    const round = rounds.findLast(({ selfTest }) => selfTest.passed);
    if (!round) continue;
    const used = [
      ...(round.calibrationRollouts ? seedTasks({ from: CALIBRATION_SEEDS, count: calibration.seeds }) : []),
      ...(trained ? seedTasks({ from: TRAINING_SEEDS, count: training.steps * training.groupsPerStep }) : []),
      ...(trained ? seedTasks({ from: HELD_OUT_SEEDS, count: validation.seeds }) : []),
    ];
    if (used.length === 0) continue;
    from.push(round.module);
    const hinted = round.withHints?.calibration.accepted;
    const environment = await environments.get(sandboxSpec(round.module));
    for (const [n, task] of used.entries()) {
      const start = await seedStart(environment, task);
      progress(n + 1, used.length);
      if (!start) continue;
      texts.push({ where: `${name}, ${task}`, text: taskText(start.messages) });
      if (hinted && start.hint !== undefined)
        texts.push({ where: `${name}, ${task}, hint`, text: normalise(start.hint) });
    }
  }
  for (const task of await exemplars(o.store, record)) {
    texts.push({ where: `exemplar ${task}`, text: await firstText(target, task) });
    progress(texts.length, texts.length);
  }
  const hits = texts.flatMap(({ where, text }) => {
    const task = leaked(tests, text);
    return task === undefined ? [] : [{ where, task }];
  });
  return { passed: hits.length === 0, textsChecked: texts.length, testTasks: tests.size, hits, from };
}

/** Train tasks whose rollouts stand as examples in the candidates. */
async function exemplars(store: ArtifactStore, { selection, baseRollouts }: CampaignRecord): Promise<string[]> {
  const keys = new Set(selection?.selected.flatMap(({ candidate }) => candidate.examples));
  const tasks = new Set<string>();
  for await (const { key, task } of readRollouts({ store, ref: baseRollouts.ref })) if (keys.has(key)) tasks.add(task);
  return [...tasks];
}

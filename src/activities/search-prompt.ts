/**
 * Searches for a prompt with GEPA: a learner without weights, which is given no key. Invariants: no (task, seed, prompt) is rolled out twice and no
 * question paid for twice, whatever is killed: every attempt runs from the beginning and finds what was made; the cap on rollouts holds over
 * all attempts.
 */
import { Context } from '@temporalio/activity';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { replaceFile } from '../artifacts/durable-file';
import { digest, seedOf } from '../artifacts/hash';
import type { ArtifactStore, Journal } from '../artifacts/store';
import { isFailure } from '../domain/failures';
import { type Checkpoint, checkpointsSchema, trainingResultSchema } from '../domain/results';
import { answerOf } from '../language-model/answer';
import { CHARACTERS_A_TOKEN } from '../language-model/costs';
import { openLedger } from '../language-model/ledger';
import { openLanguageModel } from '../language-model/model';
import { openPrompts } from '../language-model/prompts';
import { LearnerProcess, type RolloutsRequest } from '../training/learner-process';
import { isWhole, summaryOf } from '../training/result';
import { Learning, type Services } from '../training/run-learner';
import type { PolicyDependencies } from './context';
import { asideIn } from '../artifacts/aside';
import { fail } from './failures';
import { keptJson, readJson } from '../artifacts/json';
import { inputsOf, resolveTasks } from './tasks';
import type { RolloutActivities, SearchPromptInput } from './types';

/** Changes whenever the same job would come to other prompts: a new GEPA, say. */
const SEARCH_VERSION = '2';

const resultSchema = z.object({
  training: trainingResultSchema,
  /** Each prompt that was the best so far, at the step by which it was known. */
  found: checkpointsSchema,
});
type Result = z.infer<typeof resultSchema>;

export function createSearchPrompt(deps: PolicyDependencies): Pick<RolloutActivities, 'searchPrompt'> {
  const { store, home, python } = deps;
  return {
    async searchPrompt(input) {
      const { name, base, sampling, maxSteps, seed, concurrency, maxAttempts, rollouts } = input;
      const tasks = await resolveTasks(deps, input);
      const environment = await deps.environments.get(input.environment);
      const { name: environmentName, version, policy } = await environment.describe();
      const reflection = openReflection({ ...input, store });
      const job = jobOf({ input, tasks, policy, reflectionChars: reflection.characters });
      const made = {
        version: SEARCH_VERSION,
        job,
        base,
        environment: [environmentName, version],
        sampling,
        seed,
        maxSteps,
      };
      const id = digest({ ...made, rollouts, reflection: reflection.id });
      const key = `prompt-search/${id}`;
      const handedOn = ({ training, found }: Result) => summaryOf(store, { ...training, checkpoints: found });
      const known = await wholeResult(store, key);
      if (known) return handedOn(known);

      const folder = resolve(home, 'trainings', `${name}-${id.slice(0, 12)}`);
      const [jobFile, log] = [join(folder, 'job.json'), join(folder, 'trainer.log')];
      const body = JSON.stringify({ ...job, output_dir: folder }, null, 1);
      await replaceFile({ path: jobFile, body, aside: asideIn(home) });
      const command = [python, '-m', 'trainer', 'gepa', '--job', jobFile];

      const run = async (journal: Journal, spending: Journal): Promise<Result> => {
        const cap = new RolloutCap(spending, rollouts);
        Context.current().cancellationSignal.throwIfAborted();
        const process = new LearnerProcess({ command, log, env: bareEnvironment(), limits: input });
        const inputs = inputsOf(input);
        const batch = {
          ...{ environment, sampling, seed, maxSteps, concurrency, maxAttempts, inputs },
          ...{ maskReadOnlyTurns: false, everyStepAnew: false },
        };
        const services = {
          permit: (request: Parameters<RolloutCap['permit']>[0]) => cap.permit(request),
          reply: reflection.reply,
        };
        const learning = new Learning({
          ...{ deps, name, base, id, folder, journal, process, batch, services },
          checkpointEvery: 1,
        });
        try {
          const training = await learning.toTheEnd();
          const found = bestPrompts(training.checkpoints, cap);
          const kept = { training, found };
          // With a larger budget it goes on: nothing in the key tells of the budget.
          if (!reflection.spent())
            await keptJson(store, { key, producer: 'searchPrompt', inputs: [training.metrics] }, () => kept);
          return kept;
        } finally {
          await process.stop();
        }
      };
      return handedOn(await withJournals(store, [`training/${id}`, `${key}/spent`], run));
    },
  };
}

async function withJournals<R>(
  store: ArtifactStore,
  [first, second]: [string, string],
  run: (first: Journal, second: Journal) => Promise<R>,
): Promise<R> {
  const one = await store.journal(first);
  try {
    const other = await store.journal(second);
    try {
      return await run(one, other);
    } finally {
      await other.close();
    }
  } finally {
    await one.close();
  }
}

async function wholeResult(store: ArtifactStore, key: string): Promise<Result | undefined> {
  const known = await store.find(key);
  if (!known) return undefined;
  const result = await readJson(store, known, resultSchema);
  return (await isWhole(store, result.training.metrics)) ? result : undefined;
}

function bestPrompts(checkpoints: Checkpoint[], cap: RolloutCap): Checkpoint[] {
  return checkpoints
    .filter(({ policy }, n) => n === 0 || digest(policy) !== digest(checkpoints[n - 1]!.policy))
    .map(({ step, policy }) => ({ step, policy, rollouts: cap.spentAt(step) }));
}

/** job.json without its folder. */
function jobOf(o: { input: SearchPromptInput; tasks: string[]; policy: string; reflectionChars: number }): object {
  const { input, tasks, policy, reflectionChars } = o;
  const { name, rollouts, search, searchSeed } = input;
  const { place, minibatchSize, candidateSelection, acceptance, merges } = search;
  const wanted = Math.min(search.validationTasks, Math.floor(tasks.length / 2));
  const least = wanted + 2 * minibatchSize;
  if (wanted === 0 || minibatchSize > tasks.length - wanted)
    throw fail('BadInput', `arm ${name}: ${tasks.length} discovery tasks are too few; raise rollouts.tasks`);
  if (rollouts < least)
    throw fail(
      'BadInput',
      `arm ${name}: it may make ${rollouts} rollouts, and needs ${least} to try one prompt ` +
        `(validationTasks ${wanted} + 2 x minibatchSize ${minibatchSize}); lower validationTasks`,
    );
  const prompt = search.prompt.trim() || (place === 'instead' ? policy.trim() : '');
  if (place === 'instead' && prompt === '')
    throw fail('BadInput', `arm ${name}: place is instead and the target tells no policy; set prompt`);
  return {
    seed: searchSeed,
    train: tasks.slice(wanted),
    validation: tasks.slice(0, wanted),
    prompt,
    place,
    minibatch_size: minibatchSize,
    candidate_selection: candidateSelection,
    acceptance,
    merges,
    reflection_chars: reflectionChars,
  };
}

/** What a process needs that is to have no key: nothing but where programs and files are. */
const NEEDED = new Set(['PATH', 'HOME', 'TMPDIR', 'LANG', 'LC_ALL', 'SYSTEMROOT']);
const bareEnvironment = (): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(
    Object.keys(process.env).map((name) => [name, NEEDED.has(name) ? process.env[name] : undefined]),
  ),
  // Nothing may depend on the order of a set.
  PYTHONHASHSEED: '0',
});

/** One that gives no usable answer to so many questions in a row will not give one to the next. */
const UNUSABLE_IN_A_ROW = 4;
/** Of what a question may have, in characters: tokens are estimated. */
const ROOM = 0.8;

interface Reflection {
  /** What determines its replies, for keys. */
  id: string;
  /** The most that a question may have. */
  characters: number;
  reply: Services['reply'];
  /** Whether a question was left unasked for want of budget. */
  spent(): boolean;
}

type ReflectionInput = Pick<SearchPromptInput, 'name' | 'reflection' | 'campaign' | 'budget' | 'searchSeed'>;

export function openReflection(o: ReflectionInput & { store: ArtifactStore }): Reflection {
  const { name, reflection, campaign, budget, searchSeed, store } = o;
  const { model: spec, field } = reflection;
  const model = openLanguageModel(field, spec);
  const prompts = openPrompts({ folder: spec.prompts });
  const { repairs, contextTokens, maxTokens } = spec;
  let unusable = 0;
  let spent = false;
  return {
    id: digest([model.id, prompts.digest(['repair'])]),
    characters: Math.floor(ROOM * CHARACTERS_A_TOKEN * Math.max(0, contextTokens - maxTokens)),
    async reply({ messages, again }, heard) {
      const asking = {
        ledger: openLedger({ store, campaign, budget, heard }),
        step: `reflection: ${name}`,
        signal: Context.current().cancellationSignal,
        onText: heard,
      };
      const read = (text: string) => ({ value: text });
      try {
        const question = { model, messages, seed: seedOf(`${searchSeed}/${again}`), read, repairs, asking, prompts };
        const text = await answerOf(question);
        unusable = 0;
        return { text };
      } catch (error) {
        if (isFailure(error, 'BudgetSpent')) {
          spent = true;
          return 'spent';
        }
        if (!isFailure(error, 'AnswerInvalid') || ++unusable >= UNUSABLE_IN_A_ROW) throw error;
        return { problem: error.message };
      }
    },
    spent: () => spent,
  };
}

export class RolloutCap {
  /** Of this attempt, after each step. */
  private readonly spent = new Map<number, number>();
  private readonly asked = new Set<string>();

  constructor(
    private readonly journal: Journal,
    private readonly limit: number,
  ) {}

  /** Whether these rollouts may be made: all of them or none. */
  async permit({ step, tasks, group_size: groupSize, policy }: RolloutsRequest): Promise<boolean> {
    const rollouts = tasks.flatMap((task) =>
      Array.from({ length: groupSize }, (_, attempt) => digest([task, attempt, policy])),
    );
    const known = this.journal.records();
    const fresh = rollouts.filter((rollout) => !known.has(rollout));
    if (known.size + fresh.length > this.limit) return false;
    await Promise.all(fresh.map((rollout) => this.journal.append(rollout, { step })));
    for (const rollout of rollouts) this.asked.add(rollout);
    this.spent.set(step + 1, this.asked.size);
    return true;
  }

  /** Rollouts that this attempt had asked for when the step was finished; those that were found again are counted too. */
  spentAt(step: number): number {
    return this.spent.get(step) ?? 0;
  }
}

/** Searches for a prompt with GEPA: a learner without weights and keys. Every attempt runs from the beginning and reuses stored results. */
import { digest, seedOf } from '../store/hash';
import type { ArtifactStore } from '../store/store';
import { CHARACTERS_A_TOKEN } from '../domain/endpoints';
import { badInput, isFailure } from '../domain/failures';
import type { Checkpoint, TrainingResult } from '../domain/results';
import { bareEnvironment } from '../environments/child-process';
import { answerOf, promptDigest } from '../llm/answer';
import { openLanguageModel } from '../llm/model';
import { type LearningOptions, runLearner } from '../training/run-learner';
import type { PolicyDependencies } from './context';
import { ledgerOf } from './ledger';
import { activitySignal } from './heartbeat';
import { openTraining } from './tasks';
import type { SearchPromptInput } from './types';

/** Part of the key: increase it when the same job would find other prompts, for example with a new GEPA. */
const SEARCH_VERSION = '2';

/** On this queue because it makes rollouts and needs no GPU. Its checkpoints: the prompts that were the best so far, each once. */
export async function searchPrompt(deps: PolicyDependencies, input: SearchPromptInput): Promise<TrainingResult> {
  const { store } = deps;
  const { base, sampling, maxSteps, seed, rollouts } = input;
  const { environment, policy, tasks, run, batch } = await openTraining(deps, input);
  const reflection = openReflection({ ...input, store });
  const job = jobOf({ input, tasks, policy, reflectionChars: reflection.characters });
  const made = { version: SEARCH_VERSION, job, base, ...environment, sampling, seed, maxSteps };
  return runLearner(deps, {
    ...run,
    id: digest({ ...made, rollouts, reflection: reflection.id }),
    program: 'gepa',
    env: learnerEnvironment(),
    prepare: async (folder) => ({
      job: { ...job, output_dir: folder },
      learning: {
        base,
        checkpointEvery: 1,
        batch: { ...batch, sampling, maskReadOnlyTurns: false, everyStepAnew: false },
        maxRollouts: rollouts,
        reply: reflection.reply,
      },
    }),
    select: bestPrompts,
    // A larger budget lets the search continue, and the key does not contain the budget.
    isUnfinished: reflection.spent,
  });
}

/** Each prompt that was the best so far, at the step by which it was known. */
const bestPrompts = (checkpoints: Checkpoint[]): Checkpoint[] =>
  checkpoints.filter(({ policy }, n) => n === 0 || digest(policy) !== digest(checkpoints[n - 1]!.policy));

function jobOf(o: { input: SearchPromptInput; tasks: string[]; policy: string; reflectionChars: number }): object {
  const { input, tasks, policy, reflectionChars } = o;
  const { name, rollouts, search, searchSeed } = input;
  const { place, minibatchSize, acceptance } = search;
  const wanted = Math.min(search.validationTasks, Math.floor(tasks.length / 2));
  const least = wanted + 2 * minibatchSize;
  if (wanted === 0 || minibatchSize > tasks.length - wanted)
    throw badInput(`arm ${name}: ${tasks.length} train tasks are too few; raise rollouts.tasks`);
  if (rollouts < least)
    throw badInput(
      `arm ${name}: it may make ${rollouts} rollouts, and needs ${least} to try one prompt ` +
        `(validationTasks ${wanted} + 2 x minibatchSize ${minibatchSize}); lower validationTasks`,
    );
  const prompt = search.prompt.trim() || (place === 'instead' ? policy.trim() : '');
  if (place === 'instead' && prompt === '')
    throw badInput(`arm ${name}: place is instead, but the target describes no policy text to replace; set prompt`);
  return {
    seed: searchSeed,
    train: tasks.slice(wanted),
    validation: tasks.slice(0, wanted),
    prompt,
    place,
    minibatch_size: minibatchSize,
    acceptance,
    reflection_chars: reflectionChars,
  };
}

const learnerEnvironment = (): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(Object.keys(process.env).map((name) => [name, undefined])),
  ...bareEnvironment(),
  // Nothing may depend on the order of a set.
  PYTHONHASHSEED: '0',
});

/** Consecutive unusable answers after which the reflection model is given up. */
const UNUSABLE_IN_A_ROW = 4;
/** Share of the context that a question may fill, since tokens are estimated. */
const CONTEXT_SHARE = 0.8;

interface Reflection {
  /** Digest of everything that decides its replies, for keys. */
  id: string;
  characters: number;
  reply: NonNullable<LearningOptions['reply']>;
  spent(): boolean;
}

type ReflectionInput = Pick<SearchPromptInput, 'name' | 'reflection' | 'campaign' | 'budget' | 'searchSeed'>;

function openReflection(o: ReflectionInput & { store: ArtifactStore }): Reflection {
  const { name, reflection, campaign, budget, searchSeed, store } = o;
  const { model: spec, field } = reflection;
  const model = openLanguageModel(field, spec);
  const { repairs, contextTokens, maxTokens } = spec;
  let unusable = 0;
  let spent = false;
  return {
    id: digest([model.id, promptDigest(['repair'])]),
    characters: Math.floor(CONTEXT_SHARE * CHARACTERS_A_TOKEN * Math.max(0, contextTokens - maxTokens)),
    async reply({ messages, again }) {
      const asking = {
        ledger: ledgerOf({ store, campaign, budget, role: 'arm' }),
        step: `reflection: ${name}`,
        signal: activitySignal(),
      };
      const read = (text: string) => ({ value: text });
      try {
        const question = { model, messages, seed: seedOf(`${searchSeed}/${again}`), read, repairs, asking };
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

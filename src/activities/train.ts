/** Trains one LoRA with GRPO: the trainer as a learner. A training that has ended is found by its key. */
import { Context } from '@temporalio/activity';
import { join, resolve } from 'node:path';
import { replaceFile } from '../artifacts/durable-file';
import { digest } from '../artifacts/hash';
import type { ArtifactStore, Journal } from '../artifacts/store';
import { trainingResultSchema, type TrainingResult } from '../domain/results';
import { asideIn, keptJson, readJson, type GpuDependencies } from './context';
import type { GpuGroups } from './gpu-groups';
import { LearnerProcess } from './learner-process';
import { Learning } from './learning';
import { inputsOf, resolveTasks } from './tasks';
import type { GpuActivities, TrainInput } from './types';
import { isWhole } from './whole';

/** Changes whenever the same job would come to other weights. */
const TRAINER_VERSION = '4';

export function createTrain(deps: GpuDependencies): GpuActivities {
  const { store, home, python, gpus } = deps;
  return {
    async train(input) {
      const tasks = await resolveTasks(store, input.tasks);
      const job = jobOf(input, tasks);
      const { maker, base, maxSteps, maxTokens } = input;
      const { maskReadOnlyTurns } = input.training;
      const environment = await deps.environments.get(input.environment);
      const { name: environmentName, version } = await environment.describe();
      const id = digest({
        version: TRAINER_VERSION,
        maker,
        job,
        environment: [environmentName, version],
        base,
        maxSteps,
        maxTokens,
        maskReadOnlyTurns,
        hints: input.hints,
      });
      const known = await wholeResult(store, `training/${id}`);
      if (known) return known;

      const folder = resolve(home, 'trainings', `${input.name}-${id.slice(0, 12)}`);
      const [jobFile, log] = [join(folder, 'job.json'), join(folder, 'trainer.log')];
      const body = JSON.stringify({ ...job, base_model: input.baseModelPath, output_dir: folder }, null, 1);
      await replaceFile({ path: jobFile, body, aside: asideIn(home) });
      const { heartbeatSeconds, stallSeconds } = input;
      const command = [python, '-m', 'trainer', 'train', '--job', jobFile];
      const limits = { heartbeatSeconds, stallSeconds };

      const learn = async (process: LearnerProcess, journal: Journal): Promise<TrainingResult> => {
        const { name, seed, concurrency, maxAttempts } = input;
        const { temperature, steps, checkpointEvery } = input.training;
        const sampling = { temperature, topP: 1, maxTokens };
        const learning = new Learning({
          deps,
          name,
          base,
          id,
          folder,
          journal,
          process,
          steps,
          checkpointEvery,
          maskReadOnlyTurns,
          batch: {
            ...{ sampling, maxSteps, seed, concurrency, maxAttempts, inputs: inputsOf(input) },
            ...(input.hints && { hints: input.hints }),
          },
        });
        const result = await learning.toTheEnd(environment);
        const inputs = [
          result.metrics,
          ...result.checkpoints.flatMap(({ policy }) => policy.adapters.map(({ ref }) => ref)),
        ];
        await keptJson(store, { key: `training/${id}`, producer: 'train', inputs }, () => result);
        return result;
      };

      const journal = await store.journal(`training/${id}`);
      try {
        return await withGpus(gpus, async (env) => {
          Context.current().cancellationSignal.throwIfAborted();
          const process = new LearnerProcess({ command, log, env, limits });
          try {
            return await learn(process, journal);
          } finally {
            await process.stop();
          }
        });
      } finally {
        await journal.close();
      }
    },
  };
}

/** Gives the GPUs back however the work ends, or does not begin. */
async function withGpus<Result>(gpus: GpuGroups, work: (env: NodeJS.ProcessEnv) => Promise<Result>): Promise<Result> {
  const { env, giveBack } = gpus.take();
  try {
    return await work(env);
  } finally {
    giveBack();
  }
}

/** What a training has come to, if all that it names can still be read; else the learner goes on from its end and puts it there again. */
async function wholeResult(store: ArtifactStore, key: string): Promise<TrainingResult | undefined> {
  const known = await store.find(key);
  if (!known) return undefined;
  const result = await readJson(store, known, trainingResultSchema);
  const refs = result.checkpoints.flatMap(({ policy }) => policy.adapters.map(({ ref }) => ref));
  for (const ref of [result.metrics, ...refs]) if (!(await isWhole(store, ref))) return undefined;
  return result;
}

/** job.json without its folders: what decides the weights, wherever it lies. */
function jobOf({ training, seed }: TrainInput, tasks: string[]): object {
  return {
    seed,
    tasks,
    steps: training.steps,
    groups_per_step: training.groupsPerStep,
    group_size: training.groupSize,
    lora: {
      r: training.lora.r,
      alpha: training.lora.alpha,
      dropout: training.lora.dropout,
      target_modules: training.lora.targetModules,
    },
    learning_rate: training.learningRate,
    max_grad_norm: training.maxGradNorm,
    clip: training.clip,
    kl: training.kl,
    temperature: training.temperature,
    advantage: training.advantage,
    checkpoint_every: training.checkpointEvery,
    threads: training.threads,
    dtype: training.dtype,
    tokens_per_forward: training.tokensPerForward,
    gradient_checkpointing: training.gradientCheckpointing,
  };
}

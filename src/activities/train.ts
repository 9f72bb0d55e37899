/** Trains one LoRA with GRPO: the trainer as a learner. A training that has ended is found by its key. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { digest } from '../artifacts/hash';
import { trainingResultSchema } from '../domain/results';
import { keptJson, readJson, type GpuDependencies } from './context';
import { LearnerProcess } from './learner-process';
import { Learning, STOP_SECONDS } from './learning';
import { inputsOf, resolveTasks } from './tasks';
import type { GpuActivities, TrainInput } from './types';

/** Changes whenever the same job would come to other weights. */
const TRAINER_VERSION = '3';

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
      });
      const known = await store.find(`training/${id}`);
      if (known) return readJson(store, known, trainingResultSchema);

      const folder = resolve(home, 'trainings', `${input.name}-${id.slice(0, 12)}`);
      await mkdir(folder, { recursive: true });
      const [jobFile, log] = [join(folder, 'job.json'), join(folder, 'trainer.log')];
      await writeFile(
        jobFile,
        JSON.stringify({ ...job, base_model: input.baseModelPath, output_dir: folder }, null, 1),
      );
      const journal = await store.journal(`training/${id}`);
      const { env, giveBack } = gpus.take();
      const command = [python, '-m', 'trainer', 'train', '--job', jobFile];
      const process = new LearnerProcess({ command, log, env });
      try {
        const { name, seed, concurrency, maxAttempts, stallSeconds } = input;
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
          stallSeconds,
          batch: { sampling, maxSteps, seed, concurrency, maxAttempts, inputs: inputsOf(input) },
        });
        const result = await learning.toTheEnd(environment);
        const inputs = [
          result.metrics,
          ...result.checkpoints.flatMap(({ policy }) => policy.adapters.map(({ ref }) => ref)),
        ];
        await keptJson(store, { key: `training/${id}`, producer: 'train', inputs }, () => result);
        return result;
      } finally {
        await process.stop(STOP_SECONDS);
        giveBack();
        await journal.close();
      }
    },
  };
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

/** Trains one LoRA with GRPO: the trainer as a learner. A training that has ended is found by its key. */
import { Context } from '@temporalio/activity';
import { join, resolve } from 'node:path';
import { replaceFile } from '../artifacts/durable-file';
import { digest } from '../artifacts/hash';
import type { ArtifactStore, Journal } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { TrainHeartbeat } from '../domain/progress';
import { trainingResultSchema, type TrainingResult } from '../domain/results';
import { contentOf, partsOf, plainAdapter, type Part } from '../policy/parts';
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
      const start = partsOf(input.from ?? []);
      const { maker, base, maxSteps, maxTokens } = input;
      const { maskReadOnlyTurns, steps, temperature, checkpointEvery } = input.training;
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
        ...(start.length > 0 && { from: contentOf(start) }),
      });
      const known = await wholeResult(store, `training/${id}`);
      if (known) return known;

      const folder = resolve(home, 'trainings', `${input.name}-${id.slice(0, 12)}`);
      const [jobFile, log] = [join(folder, 'job.json'), join(folder, 'trainer.log')];
      const from = await initialAdapter(deps, start, steps);
      const folders = {
        base_model: input.baseModelPath,
        init_adapter: from ? await store.folder(from) : null,
        output_dir: folder,
      };
      const body = JSON.stringify({ ...job, ...folders }, null, 1);
      await replaceFile({ path: jobFile, body, aside: asideIn(home) });
      const { heartbeatSeconds, stallSeconds } = input;
      const command = [python, '-m', 'trainer', 'train', '--job', jobFile];
      const limits = { heartbeatSeconds, stallSeconds };

      const learn = async (process: LearnerProcess, journal: Journal): Promise<TrainingResult> => {
        const { name, seed, concurrency, maxAttempts } = input;
        const sampling = { temperature, topP: 1, maxTokens };
        const learning = new Learning({
          deps,
          name,
          base,
          from,
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

/** The adapter that it starts from, merged if there are several; undefined for a fresh one. */
async function initialAdapter(
  { merge }: GpuDependencies,
  parts: readonly Part[],
  steps: number,
): Promise<ArtifactRef | undefined> {
  if (parts.length === 0) return undefined;
  const context = Context.current();
  const beat = { kind: 'train', step: 0, steps, waitsFor: 'its adapters to be merged' } satisfies TrainHeartbeat;
  return plainAdapter(parts) ?? merge(parts, () => context.heartbeat(beat));
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

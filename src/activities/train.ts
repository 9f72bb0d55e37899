/**
 * Trains one LoRA: drives a trainer process, makes the rollouts it asks for, and keeps every checkpoint's adapter as an artifact.
 * Invariant: whatever is killed, the next attempt continues from the last whole checkpoint, and no finished rollout is made again.
 */
import { Context } from '@temporalio/activity';
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { digest, sha256 } from '../artifacts/hash';
import type { Journal } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { Environment } from '../domain/environment';
import type { Checkpoint, RolloutSummary, TrainingResult } from '../domain/results';
import { rollOut } from '../rollout/engine';
import { writeTrainingBatch } from '../rollout/training-batch';
import type { TrainHeartbeat } from '../workflows/messages';
import { fail, putJson, readJson, type GpuDependencies } from './context';
import { inputsOf, resolveTasks } from './tasks';
import { TrainerProcess, type TrainerMessage } from './trainer-process';
import type { GpuActivities, TrainInput } from './types';

/** A trainer that is asked to stop writes a checkpoint: seconds for a LoRA. */
const STOP_SECONDS = 60;

type Batch = { step: number } & Pick<RolloutSummary, 'ref' | 'scored' | 'broken' | 'promptTokens' | 'completionTokens'>;

export function createTrain(deps: GpuDependencies): GpuActivities {
  const { store, home, python, gpus } = deps;
  return {
    async train(input) {
      const tasks = await resolveTasks(store, input.tasks);
      const job = jobOf(input, tasks);
      const id = digest({ job, environment: input.environment, base: input.base, maxSteps: input.maxSteps });
      const finished = await store.find(`training/${id}`);
      if (finished) return readJson<TrainingResult>(store, finished);

      const folder = resolve(home, 'trainings', `${input.name}-${id.slice(0, 12)}`);
      await mkdir(folder, { recursive: true });
      await writeFile(join(folder, 'job.json'), JSON.stringify({ ...job, output_dir: folder }, null, 1));
      const journal = await store.journal(`training/${id}`);
      const { env, giveBack } = gpus.take();
      const [jobFile, log] = [join(folder, 'job.json'), join(folder, 'trainer.log')];
      const trainer = new TrainerProcess({ python, job: jobFile, log, env });
      try {
        const run = new TrainingRun({ deps, input, id, folder, journal, trainer });
        return await run.toTheEnd(await deps.environments.get(input.environment));
      } finally {
        await trainer.stop(STOP_SECONDS);
        giveBack();
        await journal.close();
      }
    },
  };
}

/** job.json without its folder: what the training's identity is derived from. */
function jobOf({ baseModelPath, training, seed }: TrainInput, tasks: string[]): object {
  return {
    base_model: baseModelPath,
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

class TrainingRun {
  private readonly progress: TrainHeartbeat;

  constructor(
    private readonly run: {
      deps: GpuDependencies;
      input: TrainInput;
      id: string;
      folder: string;
      journal: Journal;
      trainer: TrainerProcess;
    },
  ) {
    this.progress = { kind: 'train', step: 0, steps: run.input.training.steps };
  }

  async toTheEnd(environment: Environment): Promise<TrainingResult> {
    const { trainer } = this.run;
    const { cancellationSignal } = Context.current();
    cancellationSignal.addEventListener('abort', () => void trainer.stop(STOP_SECONDS), { once: true });
    for await (const message of trainer.messages(this.run.input.stallSeconds)) {
      this.beat();
      switch (message.type) {
        case 'ready':
          this.progress.step = message.step;
          break;
        case 'rollouts':
          trainer.send({ type: 'rollouts', id: message.id, file: await this.rollouts(environment, message) });
          break;
        case 'step':
          this.progress.step = message.step;
          this.progress.reward = message.metrics['reward'] ?? NaN;
          break;
        case 'checkpoint':
          await this.checkpoint(message);
          break;
        case 'done':
          return this.result();
        case 'interrupted':
          throw cancellationSignal.aborted
            ? cancellationSignal.reason
            : fail('TrainerDied', `the trainer was stopped at step ${message.step}`);
        case 'error':
          throw fail(message.error.type === 'BadJob' ? 'BadJob' : 'TrainerDied', message.error.message);
      }
    }
    if (cancellationSignal.aborted) throw cancellationSignal.reason;
    throw fail('TrainerDied', `the trainer ended without a word; see ${join(this.run.folder, 'trainer.log')}`);
  }

  /** Makes the rollouts of one step with the adapter as it is now; returns the batch file. */
  private async rollouts(
    environment: Environment,
    request: Extract<TrainerMessage, { type: 'rollouts' }>,
  ): Promise<string> {
    const { deps, input, folder, journal } = this.run;
    const adapter = await this.keepAdapter(request);
    const batch = await rollOut({
      purpose: `${input.name}: training step ${request.step + 1}`,
      environment,
      policy: { base: input.base, adapters: [{ ref: adapter, weight: 1 }] },
      tasks: request.tasks,
      attempts: request.group_size,
      sampling: { temperature: input.training.temperature, topP: 1, maxTokens: input.maxTokens },
      maxSteps: input.maxSteps,
      seed: input.seed,
      concurrency: input.concurrency,
      maxAttempts: input.maxAttempts,
      maskReadOnlyTurns: input.training.maskReadOnlyTurns,
      inputs: inputsOf(input),
      store: deps.store,
      client: deps.client,
      signal: Context.current().cancellationSignal,
      onProgress: ({ done, total }) => {
        this.progress.rollouts = { done, total };
        this.beat();
      },
    });
    if (batch.broken > 0) {
      throw fail(
        'RolloutsBroken',
        `${batch.broken} rollouts of step ${request.step + 1} are broken; a group is never trained on in part`,
      );
    }
    const { ref, scored, broken, promptTokens, completionTokens } = batch;
    const record: Batch = { step: request.step, ref, scored, broken, promptTokens, completionTokens };
    await journal.append(`batch-${ref.sha256}`, record);
    const file = join(folder, 'batch.json');
    await writeTrainingBatch({ store: deps.store, ref, tasks: request.tasks, groupSize: request.group_size, file });
    return file;
  }

  private async checkpoint(message: Extract<TrainerMessage, { type: 'checkpoint' }>): Promise<void> {
    const adapter = await this.keepAdapter(message);
    await this.run.journal.append(`checkpoint-${adapter.sha256}`, { step: message.step, adapter } satisfies Checkpoint);
  }

  /**
   * Stores the adapter's own files, without the optimizer's. The key holds the weights' hash: a training that is resumed on another machine
   * may come to slightly different ones.
   */
  private async keepAdapter({ step, adapter: from }: { step: number; adapter: string }): Promise<ArtifactRef> {
    const { deps, id, folder: work } = this.run;
    const weights = await readFile(join(from, 'adapter_model.safetensors'));
    const key = `adapter/${id}/step-${step}/${sha256(weights)}`;
    const known = await deps.store.find(key);
    if (known) return known;
    const folder = await mkdtemp(join(work, 'adapter-'));
    try {
      for (const file of ['adapter_config.json', 'adapter_model.safetensors'])
        await copyFile(join(from, file), join(folder, file));
      const inputs = this.batches(step).map((batch) => batch.ref);
      return await deps.store.putFolder({ key, folder, producer: 'train', inputs });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  /** The batches that the weights at `step` were trained on; where a step was done again after a crash, the later one. */
  private batches(step: number): Batch[] {
    return latestByStep<Batch>(this.run.journal, 'batch-').filter((batch) => batch.step < step);
  }

  private async result(): Promise<TrainingResult> {
    const { deps, input, id, folder, journal } = this.run;
    const { steps } = input.training;
    const batches = this.batches(steps);
    const metrics = await deps.store.put({
      key: `training/${id}/metrics`,
      producer: 'train',
      inputs: batches.map((batch) => batch.ref),
      mediaType: 'application/jsonl',
      body: await readFile(join(folder, 'metrics.jsonl')),
    });
    const sum = (count: (batch: Batch) => number) => batches.reduce((total, batch) => total + count(batch), 0);
    const value: TrainingResult = {
      steps,
      rollouts: sum((batch) => batch.scored),
      brokenRollouts: sum((batch) => batch.broken),
      promptTokens: sum((batch) => batch.promptTokens),
      completionTokens: sum((batch) => batch.completionTokens),
      metrics,
      checkpoints: latestByStep<Checkpoint>(journal, 'checkpoint-'),
    };
    const inputs = [metrics, ...value.checkpoints.map((c) => c.adapter)];
    await putJson(deps.store, { key: `training/${id}`, producer: 'train', inputs, value });
    return value;
  }

  private beat(): void {
    Context.current().heartbeat(this.progress);
  }
}

function latestByStep<T extends { step: number }>(journal: Journal, prefix: string): T[] {
  const records = [...journal.records()].filter(([key]) => key.startsWith(prefix)).map(([, record]) => record as T);
  return [...new Map(records.map((record) => [record.step, record])).values()].sort((a, b) => a.step - b.step);
}

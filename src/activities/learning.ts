/**
 * One run of a learner: makes the rollouts it asks for, and keeps what every checkpoint learned. Invariant: whatever is killed, the next
 * attempt continues from the last whole checkpoint, and no finished rollout is made again.
 */
import { Context } from '@temporalio/activity';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digest, sha256 } from '../artifacts/hash';
import type { Journal } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { Environment } from '../domain/environment';
import type { TrainHeartbeat } from '../domain/progress';
import type { Checkpoint, RolloutSummary, TrainingResult } from '../domain/results';
import type { FixedPolicy } from '../domain/rollout';
import { rollOut, type RollOutOptions } from '../rollout/engine';
import { writeTrainingBatch } from '../rollout/training-batch';
import { fail, type PolicyDependencies } from './context';
import type { Learned, LearnerMessage, LearnerProcess } from './learner-process';

/** A learner that is asked to stop writes a checkpoint: seconds for a LoRA. */
export const STOP_SECONDS = 60;

type Batch = { step: number } & Pick<RolloutSummary, 'ref' | 'scored' | 'broken' | 'promptTokens' | 'completionTokens'>;
type Request = Extract<LearnerMessage, { type: 'rollouts' }>;

export interface LearningOptions {
  deps: PolicyDependencies;
  /** Derived from everything that decides the result: names the artifacts. */
  id: string;
  name: string;
  /** The learner's own folder. */
  folder: string;
  journal: Journal;
  process: LearnerProcess;
  base: string;
  /** How every batch is made. */
  batch: Pick<RollOutOptions, 'sampling' | 'seed' | 'concurrency' | 'maxAttempts' | 'inputs'> & { maxSteps: number };
  maskReadOnlyTurns: boolean;
  steps: number;
  /** Checkpoints that count: every so many steps, and the last. One that an interruption saved is for resuming alone. */
  checkpointEvery: number;
  stallSeconds: number;
}

export class Learning {
  private readonly progress: TrainHeartbeat;

  constructor(private readonly run: LearningOptions) {
    this.progress = { kind: 'train', step: 0, steps: run.steps };
  }

  async toTheEnd(environment: Environment): Promise<TrainingResult> {
    const { process, stallSeconds, folder } = this.run;
    const { cancellationSignal } = Context.current();
    cancellationSignal.addEventListener('abort', () => void process.stop(STOP_SECONDS), { once: true });
    for await (const message of process.messages(stallSeconds)) {
      this.beat();
      switch (message.type) {
        case 'ready':
          this.progress.step = message.step;
          break;
        case 'rollouts':
          process.send({ type: 'rollouts', id: message.id, file: await this.rollouts(environment, message) });
          break;
        case 'step':
          this.progress.step = message.step;
          if (typeof message.metrics['reward'] === 'number') this.progress.reward = message.metrics['reward'];
          break;
        case 'checkpoint':
          await this.checkpoint(message);
          break;
        case 'done':
          return this.result(message.step);
        case 'interrupted':
          throw cancellationSignal.aborted
            ? cancellationSignal.reason
            : fail('TrainerDied', `the trainer was stopped at step ${message.step}`);
        case 'error':
          throw fail(message.error.type === 'BadJob' ? 'BadJob' : 'TrainerDied', message.error.message);
      }
    }
    if (cancellationSignal.aborted) throw cancellationSignal.reason;
    throw fail('TrainerDied', `the trainer ended without a word; see ${join(folder, 'trainer.log')}`);
  }

  /** Makes the rollouts of one step with the policy as it is now; returns the batch file. */
  private async rollouts(environment: Environment, request: Request): Promise<string> {
    const { deps, folder, journal, name, maskReadOnlyTurns, batch } = this.run;
    const title = `${name}: training step ${request.step + 1}`;
    const { summary, records } = await rollOut({
      ...batch,
      purpose: 'training',
      title,
      environment,
      policy: await this.keep(request),
      tasks: request.tasks,
      attempts: request.group_size,
      store: deps.store,
      client: deps.client,
      signal: Context.current().cancellationSignal,
      onProgress: ({ done, total }) => {
        this.progress.rollouts = { done, total };
        this.beat();
      },
    });
    const { ref, scored, broken, promptTokens, completionTokens } = summary;
    if (broken > 0) {
      const problem = `${broken} rollouts of step ${request.step + 1} are broken`;
      throw fail('RolloutsBroken', `${problem}; a group is never trained on in part`);
    }
    const record: Batch = { step: request.step, ref, scored, broken, promptTokens, completionTokens };
    await journal.append(`batch-${request.step}-${ref.sha256}`, record);
    const file = join(folder, 'batch.json');
    const { tasks, group_size: groupSize, content } = request;
    await writeTrainingBatch({ records, tasks, groupSize, content, maskReadOnlyTurns, file });
    return file;
  }

  private async checkpoint(message: Extract<LearnerMessage, { type: 'checkpoint' }>): Promise<void> {
    const policy = await this.keep(message);
    const record: Checkpoint = { step: message.step, policy };
    await this.run.journal.append(`checkpoint-${message.step}-${digest(policy)}`, record);
  }

  /** What was learned, as a policy that can be served from the store. */
  private async keep({ step, policy }: { step: number; policy: Learned }): Promise<FixedPolicy> {
    const { base } = this.run;
    if ('prompt' in policy) return { base, adapters: [], prompt: policy.prompt };
    return { base, adapters: [{ ref: await this.keepAdapter(step, policy.adapter), weight: 1 }] };
  }

  /**
   * Stores the adapter's own files, without the optimizer's. The key holds the weights' hash: a training that is resumed on another machine
   * may come to slightly different ones.
   */
  private async keepAdapter(step: number, from: string): Promise<ArtifactRef> {
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

  /** The batches that the policy at `step` was learned from; where a step was done again after a crash, the later one. */
  private batches(step: number): Batch[] {
    return latestByStep<Batch>(this.run.journal, 'batch-').filter((batch) => batch.step < step);
  }

  /** `steps` is where it ended: a learner may be done before its last step. */
  private async result(steps: number): Promise<TrainingResult> {
    const { deps, id, folder, journal, checkpointEvery } = this.run;
    const batches = this.batches(steps);
    const metrics = await deps.store.put({
      key: `training/${id}/metrics`,
      producer: 'train',
      inputs: batches.map((batch) => batch.ref),
      mediaType: 'application/jsonl',
      body: await readFile(join(folder, 'metrics.jsonl')),
    });
    const sum = (count: (batch: Batch) => number) => batches.reduce((total, batch) => total + count(batch), 0);
    return {
      steps,
      rollouts: sum((batch) => batch.scored),
      brokenRollouts: sum((batch) => batch.broken),
      promptTokens: sum((batch) => batch.promptTokens),
      completionTokens: sum((batch) => batch.completionTokens),
      metrics,
      checkpoints: latestByStep<Checkpoint>(journal, 'checkpoint-').filter(
        ({ step }) => (step > 0 && step % checkpointEvery === 0) || step === steps,
      ),
    };
  }

  private beat(): void {
    Context.current().heartbeat(this.progress);
  }
}

function latestByStep<T extends { step: number }>(journal: Journal, prefix: string): T[] {
  const records = [...journal.records()].filter(([key]) => key.startsWith(prefix)).map(([, record]) => record as T);
  return [...new Map(records.map((record) => [record.step, record])).values()].sort((a, b) => a.step - b.step);
}

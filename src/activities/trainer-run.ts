/**
 * One training by a learner on this worker's GPUs. Invariant: what has ended is found by its key, if all that it names can still be read; else
 * the learner goes on from its end and puts it there again.
 */
import { Context } from '@temporalio/activity';
import { join, resolve } from 'node:path';
import { replaceFile } from '../artifacts/durable-file';
import type { ArtifactStore } from '../artifacts/store';
import { trainingResultSchema, type TrainingResult, type TrainingSummary } from '../domain/results';
import { asideIn, keptJson, readJson, type GpuDependencies } from './context';
import { summaryOf } from './keep';
import { LearnerProcess, type LearnerLimits } from './learner-process';
import { Learning, type LearningOptions } from './learning';
import { isWhole } from './whole';

export interface TrainerRun {
  /** What is trained, for people; names the folder. */
  name: string;
  /** Digest of what decides the weights. */
  id: string;
  /** Of `python -m trainer`. */
  program: 'train' | 'sft';
  /** job.json; `folder` is the learner's own. Called only where there is something to do. */
  job: (folder: string) => Promise<object>;
  limits: Pick<LearnerLimits, 'heartbeatSeconds' | 'stallSeconds'>;
  /** Called after `job`. */
  learning: () => Promise<Pick<LearningOptions, 'base' | 'from' | 'checkpointEvery' | 'steps' | 'batch' | 'given'>>;
}

export async function runTrainer(deps: GpuDependencies, run: TrainerRun): Promise<TrainingSummary> {
  const { store, home, python, gpus } = deps;
  const { name, id, program, limits } = run;
  const key = `training/${id}`;
  const { result: known, next } = await wholeResult(store, key);
  if (known) return summaryOf(store, known);

  const folder = resolve(home, 'trainings', `${name}-${id.slice(0, 12)}`);
  const [jobFile, log] = [join(folder, 'job.json'), join(folder, 'trainer.log')];
  const body = JSON.stringify(await run.job(folder), null, 1);
  await replaceFile({ path: jobFile, body, aside: asideIn(home) });
  const command = [python, '-m', 'trainer', program, '--job', jobFile];
  const options = await run.learning();
  const journal = await store.journal(key);
  try {
    const { env, giveBack } = gpus.take();
    try {
      Context.current().cancellationSignal.throwIfAborted();
      const process = new LearnerProcess({ command, log, env, limits });
      try {
        const result = await new Learning({ ...options, deps, name, id, folder, journal, process }).toTheEnd();
        const inputs = [
          result.metrics,
          ...result.checkpoints.flatMap(({ policy }) => policy.adapters.map(({ ref }) => ref)),
        ];
        await keptJson(store, { key: next, producer: 'train', inputs }, () => result);
        return await summaryOf(store, result);
      } finally {
        await process.stop();
      }
    } finally {
      giveBack();
    }
  } finally {
    await journal.close();
  }
}

/** What it came to, and the key for what it comes to where that is not there: one that was made anew came to others, and stands after the first. */
async function wholeResult(store: ArtifactStore, key: string): Promise<{ result?: TrainingResult; next: string }> {
  for (let n = 1; ; n++) {
    const next = n === 1 ? key : `${key}/${n}`;
    const known = await store.find(next);
    if (!known) return { next };
    const result = await readJson(store, known, trainingResultSchema);
    const refs = result.checkpoints.flatMap(({ policy }) => policy.adapters.map(({ ref }) => ref));
    const whole = await Promise.all([result.metrics, ...refs].map((ref) => isWhole(store, ref)));
    if (whole.every(Boolean)) return { result, next };
  }
}

/**
 * One training by a learner on this worker's GPUs. Invariant: what has ended is found by its key, if all that it names can still be read; else
 * the learner goes on from its end and puts it there again.
 */
import { Context } from '@temporalio/activity';
import { join, resolve } from 'node:path';
import { replaceFile } from '../artifacts/durable-file';
import type { ArtifactStore } from '../artifacts/store';
import { trainingResultSchema, type TrainingResult } from '../domain/iterations';
import { asideIn, keptJson, readJson, type GpuDependencies } from './context';
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

export async function runTrainer(deps: GpuDependencies, run: TrainerRun): Promise<TrainingResult> {
  const { store, home, python, gpus } = deps;
  const { name, id, program, limits } = run;
  const key = `training/${id}`;
  const known = await wholeResult(store, key);
  if (known) return known;

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
        await keptJson(store, { key, producer: 'train', inputs }, () => result);
        return result;
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

async function wholeResult(store: ArtifactStore, key: string): Promise<TrainingResult | undefined> {
  const known = await store.find(key);
  if (!known) return undefined;
  const result = await readJson(store, known, trainingResultSchema);
  const refs = result.checkpoints.flatMap(({ policy }) => policy.adapters.map(({ ref }) => ref));
  for (const ref of [result.metrics, ...refs]) if (!(await isWhole(store, ref))) return undefined;
  return result;
}

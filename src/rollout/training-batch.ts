/**
 * The trainer's batch.json (docs/trainer-protocol.md) from a finished batch. Invariant: a group is whole or the batch is refused;
 * an advantage over part of a group would be wrong without being noticed.
 */
import { rename, writeFile } from 'node:fs/promises';
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { ScoredRollout } from '../domain/rollout';
import { OutsideFailure } from './failure';
import { readRollouts } from './read';

export interface TrainingBatchOptions {
  store: ArtifactStore;
  ref: ArtifactRef;
  /** The groups asked for, in order. */
  tasks: string[];
  groupSize: number;
}

export interface TrainingBatch {
  groups: { task: string; rollouts: { rows: TrainerRow[]; reward: number }[] }[];
}

interface TrainerRow {
  prompt_ids: number[];
  completion_ids: number[];
  logprobs: number[];
  mask: number[];
}

export async function trainingBatch({ store, ref, tasks, groupSize }: TrainingBatchOptions): Promise<TrainingBatch> {
  const byTask = new Map<string, ScoredRollout[]>(tasks.map((task) => [task, []]));
  for await (const rollout of readRollouts({ store, ref })) {
    if (rollout.status === 'scored') byTask.get(rollout.task)?.push(rollout);
  }
  const groups = tasks.map((task) => {
    const rollouts = byTask.get(task)!;
    if (rollouts.length !== groupSize) {
      const found = `task ${task} has ${rollouts.length} scored rollouts of ${groupSize}`;
      throw new OutsideFailure('RolloutsBroken', `${found} in ${ref.uri}; a group is never trained on in part`);
    }
    return { task, rollouts: rollouts.map(trainerRollout) };
  });
  return { groups };
}

function trainerRollout({
  rows,
  reward,
  task,
  attempt,
}: ScoredRollout): TrainingBatch['groups'][number]['rollouts'][number] {
  if (rows.length === 0) {
    const problem = `rollout ${attempt} of task ${task} holds no sampled token: its first prompt is longer than the context`;
    throw new OutsideFailure('BadInput', `${problem}; train on shorter tasks`);
  }
  return {
    rows: rows.map(({ promptIds, completionIds, logprobs, mask }) => {
      return { prompt_ids: promptIds, completion_ids: completionIds, logprobs, mask };
    }),
    reward,
  };
}

/** Writes batch.json; the file is whole from the moment it has its name. */
export async function writeTrainingBatch({ file, ...options }: TrainingBatchOptions & { file: string }): Promise<void> {
  const aside = `${file}.part`;
  await writeFile(aside, JSON.stringify(await trainingBatch(options)));
  await rename(aside, file);
}

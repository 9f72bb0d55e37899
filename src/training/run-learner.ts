/** Runs a learner (a training, a search for a prompt) as a subprocess with a job file, and makes the rollouts that it requests. */
import { join } from 'node:path';
import { asideIn, folderIn, replaceFile } from '../store/durable-file';
import { keptJson, readJson, type ArtifactStore } from '../store/store';
import { type FailureType, CONVERSATION_FAILURES, OutsideFailure } from '../domain/failures';
import { type Checkpoint, type TrainingResult, trainingResultSchema } from '../domain/results';
import type { Outcome } from '../domain/outcomes';
import { brokenFailure } from '../domain/rollout';
import type { TrainHeartbeat } from '../domain/work';
import { count } from '../metrics';
import type { PolicyClient } from '../policy/client';
import { countDurable, rollOut, type RollOutOptions } from '../rollout/engine';
import { writeTrainingBatch } from '../rollout/training-batch';
import { type LearnerLimits, LearnerProcess, type ReplyRequest, type RolloutsRequest } from './learner-process';
import { findResult, refsOf, TrainingRecord, type TrainingRecordOptions } from './result';

interface LearnerDependencies {
  store: ArtifactStore;
  home: string;
  python: string;
  client: PolicyClient;
}

export interface LearningOptions extends Omit<TrainingRecordOptions, 'store' | 'campaign' | 'name' | 'id' | 'folder'> {
  batch: Pick<
    RollOutOptions,
    'campaign' | 'environment' | 'sampling' | 'seed' | 'concurrency' | 'maxAttempts' | 'inputs'
  > & {
    maxSteps: number;
    maskReadOnlyTurns: boolean;
    /** True if a step plays tasks again that an earlier step has played with the same policy. */
    everyStepAnew: boolean;
  };
  steps?: number;
  /** Returns a language model's reply; `spent`: the budget is used up, and the learner ends with what it has. */
  reply?: (request: ReplyRequest) => Promise<{ text: string } | { problem: string } | 'spent'>;
  bill?: {
    /** Throws BudgetSpent. `ended` aborts when the step has ended. */
    permit(ended: AbortSignal): Promise<void>;
    count(paid: { forward: number; trained: number }): Promise<void>;
  };
}

interface LearnerRun {
  campaign: string;
  name: string;
  id: string;
  program: 'train' | 'gepa' | 'tinker';
  python?: string;
  limits: Pick<LearnerLimits, 'stallSeconds'>;
  signal: AbortSignal;
  /** Added to the worker's environment; `undefined` values are taken out of it. */
  env?: NodeJS.ProcessEnv;
  keys?: NodeJS.ProcessEnv;
  /** Returns the learner's job.json, and how it learns. Called unless the result is found. `folder` is the learner's own. */
  prepare: (folder: string) => Promise<{ job: object; learning: LearningOptions }>;
  select?: (checkpoints: Checkpoint[]) => Checkpoint[];
  show: (details: TrainHeartbeat) => void;
  onDurable: () => void;
  /** Returns true if another attempt could continue: then the result is not stored. */
  isUnfinished?: () => boolean;
}

/** Runs a training to its end, or finds its result. After any OutsideFailure the next attempt continues from the last checkpoint. */
export async function runLearner(deps: LearnerDependencies, run: LearnerRun): Promise<TrainingResult> {
  const { store, home } = deps;
  const { campaign, name, id, signal, env = {}, keys, limits } = run;
  const key = `training/${id}`;
  const known = await findResult(store, key);
  if (known) return known;

  // A learner loads its model before it asks for rollouts, which need the server.
  if (!(await deps.client.reachable()))
    throw new OutsideFailure('PolicyServerUnavailable', 'the policy server does not answer; the training waits for it');
  const folder = folderIn(folderIn(join(home, 'trainings'), campaign), `${name}-${id.slice(0, 12)}`);
  const { job, learning } = await run.prepare(folder);
  if ((await learning.batch.environment.reachable?.()) === false)
    throw new OutsideFailure(
      'PartnerUnavailable',
      `the simulated user or the judge does not answer; the training ${name} waits for it`,
    );
  const jobFile = join(folder, 'job.json');
  await replaceFile({ path: jobFile, body: JSON.stringify(job, null, 1), aside: asideIn(home) });
  signal.throwIfAborted();
  const record = new TrainingRecord({ ...learning, store, campaign, name, id, folder });
  const step = await record.restore();
  const command = [run.python ?? deps.python, '-m', 'trainer', run.program, '--job', jobFile];
  const process = new LearnerProcess({ command, log: join(folder, 'trainer.log'), env, keys, limits });
  try {
    const made = await new Learning({ ...learning, ...run, deps, folder, record, process, step }).run();
    const result = { ...made, checkpoints: run.select?.(made.checkpoints) ?? made.checkpoints };
    if (run.isUnfinished?.()) return result;
    const ref = await keptJson(store, { key, producer: 'train', inputs: refsOf(result) }, () => result);
    await record.end();
    return await readJson(store, ref, trainingResultSchema);
  } finally {
    await process.stop();
    await record.stored().catch(() => undefined);
  }
}

/** Failures that a learner may report of itself; any other is a TrainerDied. */
const OWN_ERRORS: readonly string[] = ['BadJob', 'Diverged', 'SamplerDiffers', 'DiskFull'] satisfies FailureType[];

const OUT_OF_MEMORY =
  'because memory ran out: lower training.tokensPerForward, set training.gradientCheckpointing to true, take a smaller base model, or give the machine more memory';

const died = (why: string) => new OutsideFailure('TrainerDied', `the trainer ${why}`);

export class Learning {
  private readonly progress: TrainHeartbeat;
  /** Aborts when the step that is paid for has ended. */
  private paying = new AbortController();

  constructor(
    private readonly o: LearningOptions &
      Pick<TrainingRecordOptions, 'folder'> &
      Pick<LearnerRun, 'name' | 'signal' | 'show' | 'onDurable'> & {
        deps: Pick<LearnerDependencies, 'store' | 'home' | 'client'>;
        record: TrainingRecord;
        process: LearnerProcess;
        step?: number;
      },
  ) {
    const { steps, step = 0 } = o;
    const begins = step > 0 && ({ continues: true } as const);
    this.progress = { kind: 'train', step, ...(steps && { steps }), ...begins, waitsFor: 'the trainer to start' };
  }

  async run(): Promise<TrainingResult> {
    this.show();
    try {
      return await this.answer();
    } finally {
      this.paying.abort();
    }
  }

  private async answer(): Promise<TrainingResult> {
    const { process, folder, signal, record, onDurable } = this.o;
    signal.addEventListener('abort', () => void process.stop(), { once: true });
    if (signal.aborted) void process.stop(); // the event has passed
    for await (const message of process.messages()) {
      this.waitFor(undefined);
      switch (message.type) {
        case 'ready':
          this.progress.step = message.step;
          delete this.progress.continues;
          break;
        case 'rollouts':
          this.paying = new AbortController();
          await this.o.bill?.permit(this.paying.signal);
          process.send({ id: message.id, ...(await this.rollouts(message)) });
          break;
        case 'reply':
          process.send({ id: message.id, ...(await this.reply(message)) });
          break;
        case 'progress':
          this.progress.update = { done: message.done, total: message.total };
          break;
        case 'step':
          delete this.progress.update;
          this.progress.step = message.step;
          if (typeof message.metrics['reward'] === 'number') this.progress.reward = message.metrics['reward'];
          count('campaign_optimizer_steps', 1);
          await this.pay(message.metrics);
          break;
        case 'checkpoint':
          await record.addCheckpoint(message);
          onDurable();
          break;
        case 'done':
          return record.result(message.step);
        case 'interrupted':
          signal.throwIfAborted();
          throw died(`was stopped at step ${message.step}`);
        case 'error': {
          const { type, message: text } = message.error;
          throw new OutsideFailure(OWN_ERRORS.includes(type) ? (type as FailureType) : 'TrainerDied', text);
        }
      }
      this.show();
    }
    signal.throwIfAborted();
    await process.stop();
    const how = process.wasKilled ? `was killed, maybe ${OUT_OF_MEMORY}` : 'exited without an error message';
    throw died(`${how}; see ${join(folder, 'trainer.log')}`);
  }

  /** A step is paid for when it has been made, and again if it is made again. */
  private async pay(metrics: Record<string, number | null>): Promise<void> {
    const { bill } = this.o;
    const { forward_tokens: forward, trained_tokens: trained } = metrics;
    if (bill && typeof forward === 'number' && typeof trained === 'number') await bill.count({ forward, trained });
    this.paying.abort();
  }

  /** Plays the batch of a step, or finds it, and writes it for the learner; returns the answer, which names the file. */
  private async rollouts(request: RolloutsRequest): Promise<object> {
    const { folder, batch, deps, name, record, signal, onDurable } = this.o;
    const { step, tasks, group_size: groupSize, content } = request;
    if (!record.permit(request)) return { type: 'spent' };
    const { everyStepAnew, maskReadOnlyTurns, ...options } = batch;
    const policy = await record.policy({ step, policy: request.policy });
    const noteDurable = countDurable(onDurable);
    const { summary, records, outcomes } = await rollOut({
      ...{ ...options, ...deps, policy, tasks, attempts: groupSize, signal },
      ...(everyStepAnew && { step }),
      purpose: 'training',
      title: `${name}: training step ${step + 1}`,
      onProgress: ({ done, total, broken, turns }) => {
        this.progress.rollouts = { done, total };
        if (turns > 0) delete this.progress.waitsFor;
        noteDurable({ done, broken });
        this.show();
      },
    });
    const trained = content === 'rows' ? withoutUnanswered(tasks, outcomes) : tasks;
    const failure = brokenFailure(
      outcomes.filter(({ task }) => trained.includes(task)),
      `step ${step + 1}`,
    );
    if (failure) throw failure;
    const file = join(folder, 'batch.jsonl');
    const written = { records: await records(), tasks: trained, groupSize, content, maskReadOnlyTurns };
    await writeTrainingBatch({ ...written, file, aside: asideIn(deps.home) });
    // If the policy is the unchanged base model, tasks and keys are those of the base rollouts, and so are the rollouts.
    const shared = !everyStepAnew && policy.adapters.length === 0 && policy.prompt === undefined;
    record.addBatch(step, summary, { shared });
    // If this host is lost during the update, another one continues from the state before it.
    this.waitFor('its state to be stored');
    await record.stored();
    return { type: 'rollouts', file, ...(trained.length < tasks.length && { tasks: trained }) };
  }

  private async reply(request: ReplyRequest): Promise<object> {
    const { reply } = this.o;
    if (!reply) throw died('asks for a reply, and its worker has no language model');
    this.waitFor('the language model');
    const answer = await reply(request);
    this.waitFor(undefined);
    if (answer === 'spent') return { type: 'spent' };
    return { type: 'text' in answer ? 'reply' : 'no_reply', ...answer };
  }

  private waitFor(what: string | undefined): void {
    if (what === undefined) delete this.progress.waitsFor;
    else this.progress.waitsFor = what;
    this.show();
  }

  private show(): void {
    this.o.show({ ...this.progress });
  }
}

/** Leaves out the groups in which a simulated user or a judge failed at a conversation; returns all tasks if no group would be left. */
function withoutUnanswered(tasks: string[], outcomes: readonly Outcome[]): string[] {
  const isUnanswered = (one: Outcome) =>
    one.status === 'broken' && CONVERSATION_FAILURES.some((type) => type === one.error.type);
  const unanswered = new Set(outcomes.filter(isUnanswered).map(({ task }) => task));
  return unanswered.size < tasks.length ? tasks.filter((task) => !unanswered.has(task)) : tasks;
}

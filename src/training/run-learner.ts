/**
 * One run of a learner: makes the rollouts it asks for, and keeps what every checkpoint learned. Invariant: whatever is killed, the next
 * attempt continues from the last whole checkpoint, and no finished rollout is made again.
 */
import { Context } from '@temporalio/activity';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { asideIn } from '../artifacts/aside';
import { keptJson, readJson } from '../artifacts/json';
import { replaceFile } from '../artifacts/durable-file';
import type { ArtifactStore } from '../artifacts/store';
import { type FailureType, isFailure, OutsideFailure } from '../domain/failures';
import { type TrainingResult, trainingResultSchema, type TrainingSummary } from '../domain/results';
import { brokenFailure, type FixedPolicy } from '../domain/rollout';
import type { TrainHeartbeat } from '../domain/work';
import type { PolicyClient } from '../policy/client';
import { rollOut, type RolloutBatch, type RollOutOptions } from '../rollout/engine';
import { writeTrainingBatch } from '../rollout/training-batch';
import { type LearnerLimits, LearnerProcess, type ReplyRequest, type RolloutsRequest } from './learner-process';
import type { GpuGroups } from './gpu-groups';
import { isWhole, summaryOf, TrainingRecord, type TrainingRecordOptions } from './result';

export interface LearnerDependencies {
  store: ArtifactStore;
  /** Of the campaigns: a learner's folder lies there. */
  home: string;
  /** The Python interpreter of the trainer's virtual environment. */
  python: string;
  client: PolicyClient;
}

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

export async function runTrainer(
  deps: LearnerDependencies & { gpus: GpuGroups },
  run: TrainerRun,
): Promise<TrainingSummary> {
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

/** What a learner may be given beside the rollouts of its steps. */
export interface Services {
  /** Whether it may have these rollouts; if not, it ends with what it has. */
  permit(request: RolloutsRequest): Promise<boolean>;
  /** What a language model says; `spent`: it may be asked no more, and the learner ends with what it has. `heard`: something of it has come. */
  reply(request: ReplyRequest, heard: () => void): Promise<{ text: string } | { problem: string } | 'spent'>;
}

export interface LearningOptions extends Omit<TrainingRecordOptions, 'store'> {
  deps: LearnerDependencies;
  name: string;
  process: LearnerProcess;
  /** How every batch is made; absent where it learns from what it was given, and no step has rollouts. */
  batch?: Pick<
    RollOutOptions,
    'environment' | 'sampling' | 'seed' | 'concurrency' | 'maxAttempts' | 'inputs' | 'hints'
  > & {
    maxSteps: number;
    maskReadOnlyTurns: boolean;
    /** Whether a step plays its tasks anew where an earlier one has played them with the same policy. */
    everyStepAnew: boolean;
  };
  /** Absent where nobody knows how many it will take. */
  steps?: number;
  services?: Services;
}

/** The base model as it is, on tasks and under keys of the base rollouts: no weights were changed by then, and no prompt given. */
const isBaseRollouts = ({ everyStepAnew }: { everyStepAnew: boolean }, { adapters, prompt }: FixedPolicy): boolean =>
  !everyStepAnew && adapters.length === 0 && prompt === undefined;

/** What a learner may say of its own end; anything else is a TrainerDied. */
const OWN_ERRORS: readonly string[] = ['BadJob', 'Diverged', 'DiskFull'] satisfies FailureType[];

export class Learning {
  private readonly record: TrainingRecord;
  private readonly progress: TrainHeartbeat;
  private beat: () => void = () => undefined;
  /** Something was done in this attempt that the next one would do again. The first attempt has waited for its slot. */
  private hasPlace = false;

  constructor(private readonly run: LearningOptions) {
    this.record = new TrainingRecord({ ...run, store: run.deps.store });
    const { steps } = run;
    this.progress = { kind: 'train', step: 0, ...(steps && { steps }), waitsFor: 'the trainer to start' };
  }

  async toTheEnd(): Promise<TrainingResult> {
    const { process, folder } = this.run;
    // Taken here: what a timer or the signal calls is not within the activity's context.
    const context = Context.current();
    const { cancellationSignal } = context;
    this.beat = () => context.heartbeat({ ...this.progress });
    process.onWork = this.beat;
    cancellationSignal.addEventListener('abort', () => void process.stop(), { once: true });
    if (cancellationSignal.aborted) void process.stop(); // nobody is told of what has happened
    for await (const message of process.messages()) {
      this.waitsFor(undefined);
      switch (message.type) {
        case 'ready':
          this.progress.step = message.step;
          break;
        case 'rollouts':
          process.send({ id: message.id, ...(await this.rollouts(message)) });
          break;
        case 'reply':
          process.send({ id: message.id, ...(await this.reply(message)) });
          break;
        case 'step':
          this.progress.step = message.step;
          if (typeof message.metrics['reward'] === 'number') this.progress.reward = message.metrics['reward'];
          break;
        case 'checkpoint':
          await this.patiently(() => this.record.addCheckpoint(message));
          break;
        case 'done':
          return await this.patiently(() => this.record.result(message.step));
        case 'interrupted':
          throw cancellationSignal.aborted
            ? cancellationSignal.reason
            : new OutsideFailure('TrainerDied', `the trainer was stopped at step ${message.step}`);
        case 'error': {
          const { type, message: text } = message.error;
          throw new OutsideFailure(OWN_ERRORS.includes(type) ? (type as FailureType) : 'TrainerDied', text);
        }
      }
      this.beat();
    }
    if (cancellationSignal.aborted) throw cancellationSignal.reason;
    throw new OutsideFailure('TrainerDied', `the trainer ended without a word; see ${join(folder, 'trainer.log')}`);
  }

  /** Makes the rollouts of one step with the policy as it is now; answers with the batch file. */
  private async rollouts(request: RolloutsRequest): Promise<object> {
    const { folder, batch, deps, services } = this.run;
    if (!batch)
      throw new OutsideFailure('TrainerDied', 'the trainer asks for rollouts, and it learns from what it was given');
    if (services && !(await this.patiently(() => services.permit(request)))) return { type: 'spent' };
    const file = join(folder, 'batch.json');
    await this.patiently(async (progressed) => {
      const policy = await this.record.policy(request);
      const { summary, records } = await this.rollOut({ batch, request, policy, progressed });
      await this.record.addBatch(request.step, summary, { shared: isBaseRollouts(batch, policy) });
      const { tasks, group_size: groupSize, content } = request;
      const { maskReadOnlyTurns } = batch;
      const aside = asideIn(deps.home);
      await writeTrainingBatch({ records: await records(), tasks, groupSize, content, maskReadOnlyTurns, file, aside });
    });
    return { type: 'rollouts', file };
  }

  private async reply(request: ReplyRequest): Promise<object> {
    const { services } = this.run;
    if (!services)
      throw new OutsideFailure('TrainerDied', 'the trainer asks for a reply, and its worker has no language model');
    const answer = await this.patiently(() => {
      this.waitsFor('the language model');
      return services.reply(request, this.beat);
    });
    if (answer === 'spent') return { type: 'spent' };
    return { type: 'text' in answer ? 'reply' : 'no_reply', ...answer };
  }

  /** What is away for a while, room on the disk too, is waited for: the learner keeps its place, if it has one. `work` can be done again. */
  private async patiently<Result>(work: (progressed: (done: number) => void) => Promise<Result>): Promise<Result> {
    const { cancellationSignal: signal, info } = Context.current();
    const patience = info.attempt > 1 && !this.hasPlace && { patienceSeconds: 0 };
    const result = await patiently({ work, onWait: (what) => this.waitsFor(what), signal, ...patience });
    this.hasPlace = true;
    this.waitsFor(undefined);
    return result;
  }

  private async rollOut(o: {
    batch: NonNullable<LearningOptions['batch']>;
    request: RolloutsRequest;
    policy: FixedPolicy;
    progressed: (scored: number) => void;
  }): Promise<RolloutBatch> {
    const { batch, request, policy, progressed } = o;
    const { deps, name } = this.run;
    const title = `${name}: training step ${request.step + 1}`;
    const made = await rollOut({
      ...batch,
      ...(batch.everyStepAnew && { step: request.step }),
      purpose: 'training',
      title,
      policy,
      tasks: request.tasks,
      attempts: request.group_size,
      store: deps.store,
      client: tellingOfMerges(deps.client, this.beat),
      signal: Context.current().cancellationSignal,
      onProgress: ({ done, total, broken, turns }) => {
        this.progress.rollouts = { done, total };
        if (turns > 0) delete this.progress.waitsFor;
        progressed(done - broken);
        this.beat();
      },
    });
    // A group is never trained on in part.
    const failure = brokenFailure(made.outcomes, `step ${request.step + 1}`);
    if (failure) throw failure;
    return made;
  }

  private waitsFor(what: string | undefined): void {
    if (what === undefined) delete this.progress.waitsFor;
    else this.progress.waitsFor = what;
    this.beat();
  }
}

/** From the first failure on, without any more done. */
const PATIENCE_SECONDS = 300;
const FIRST_WAIT_SECONDS = 1;
const LONGEST_WAIT_SECONDS = 15;

/** Whose failures they are, for people. */
const awaited: [name: string, types: FailureType[]][] = [
  [
    'the policy server',
    ['PolicyServerUnavailable', 'PolicyServerTimeout', 'PolicyServerError', 'PolicyServerBusy', 'PolicyNotLoaded'],
  ],
  ['the environment', ['EnvironmentDied', 'EnvironmentFailed']],
  ['a partner model', ['PartnerUnavailable', 'UserSimulatorFailed', 'JudgeFailed']],
  ['the language model', ['LanguageModelUnavailable', 'LanguageModelFailed']],
  ['room on the disk', ['DiskFull']],
];

interface Patiently<Result> {
  /** One attempt; it tells how much there is by now. */
  work: (progressed: (done: number) => void) => Promise<Result>;
  /** After every attempt that failed: what it waits for. */
  onWait: (what: string) => void;
  signal: AbortSignal;
  patienceSeconds?: number;
}

/** The result of the first attempt that has one. Each attempt goes on from what those before have done. */
export async function patiently<Result>(o: Patiently<Result>): Promise<Result> {
  const { work, onWait, signal, patienceSeconds = PATIENCE_SECONDS } = o;
  let most = 0;
  let since: number | undefined;
  let wait = FIRST_WAIT_SECONDS;
  for (;;) {
    try {
      return await work((done) => {
        if (done <= most) return;
        [most, since, wait] = [done, undefined, FIRST_WAIT_SECONDS];
      });
    } catch (error) {
      signal.throwIfAborted();
      since ??= performance.now();
      const away = (performance.now() - since) / 1000;
      if (!(error instanceof OutsideFailure) || !error.retryable || away + wait > patienceSeconds) throw error;
      // Another worker's server may have it.
      if (error.type === 'WrongBaseModel') throw error;
      const [name] = awaited.find(([, types]) => isFailure(error, ...types)) ?? ['another attempt'];
      onWait(`${name}: ${error.message}`);
      await sleep(wait * 1000, undefined, { signal });
      wait = Math.min(2 * wait, LONGEST_WAIT_SECONDS);
    }
  }
}

/** `onWork` is called whenever what makes a policy ready to serve can be seen to work. */
export const tellingOfMerges = (client: PolicyClient, onWork: () => void): PolicyClient => ({
  ...client,
  sample: (request) => client.sample({ ...request, onWork }),
});

/**
 * Runs a learner (a training on rollouts, a search for a prompt) as a subprocess with a job file, and makes the
 * rollouts that it asks for. Invariant: whatever is killed, the next attempt continues from the last whole checkpoint, and no finished
 * rollout is made again; a run that has ended is found by its key.
 */
import { Context } from '@temporalio/activity';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { asideIn, folderIn, replaceFile } from '../store/durable-file';
import { digest } from '../store/hash';
import { keptJson, readJson, type ArtifactStore } from '../store/store';
import { type FailureType, OF_A_CONVERSATION, OutsideFailure, LEARNER } from '../domain/failures';
import { type Checkpoint, type TrainingResult, trainingResultSchema } from '../domain/results';
import type { Outcome } from '../domain/outcomes';
import { brokenFailure, type Rollout } from '../domain/rollout';
import type { TrainHeartbeat } from '../domain/work';
import { count } from '../metrics';
import type { PolicyClient } from '../policy/client';
import { countDurable, rollOut, type RollOutOptions } from '../rollout/engine';
import { writeTrainingBatch } from '../rollout/training-batch';
import { type LearnerLimits, LearnerProcess, type ReplyRequest, type RolloutsRequest } from './learner-process';
import { findResult, Overtaken, refsOf, TrainingRecord, type TrainingRecordOptions } from './result';

interface LearnerDependencies {
  store: ArtifactStore;
  /** Folder of the campaigns: a learner's own folder lies there. */
  home: string;
  /** The Python interpreter of the trainer's virtual environment. */
  python: string;
  client: PolicyClient;
}

/** How a learner's rollouts are made, and what of it is kept. */
export interface LearningOptions extends Omit<TrainingRecordOptions, 'store' | 'campaign' | 'name' | 'id' | 'folder'> {
  /** How every batch is made. */
  batch: Pick<
    RollOutOptions,
    'campaign' | 'environment' | 'sampling' | 'seed' | 'concurrency' | 'maxAttempts' | 'inputs'
  > & {
    maxSteps: number;
    maskReadOnlyTurns: boolean;
    /** Whether a step plays its tasks anew where an earlier one has played them with the same policy. */
    everyStepAnew: boolean;
  };
  /** Absent where nobody knows how many it will take. */
  steps?: number;
  /** What a language model says; `spent`: it may be asked no more, and the learner ends with what it has. */
  reply?: (request: ReplyRequest) => Promise<{ text: string } | { problem: string } | 'spent'>;
  /** Whom a step's tokens are paid to, where that is somebody. */
  bill?: {
    /** Throws BudgetSpent where nothing may be spent any more. `ended` aborts when the step has ended. */
    permit(ended: AbortSignal): Promise<void>;
    count(paid: { forward: number; trained: number }): Promise<void>;
  };
}

interface LearnerRun {
  /** Whose training it is: its state lives as long as the campaign. */
  campaign: string;
  /** What is learned, for people; names the folder. */
  name: string;
  /** Digest of what decides the result. */
  id: string;
  /** Of `python -m trainer`. */
  program: 'train' | 'gepa' | 'tinker';
  /** Its own interpreter, where the trainer's does not have what it needs. */
  python?: string;
  limits: Pick<LearnerLimits, 'stallSeconds'>;
  /** Aborts where it is to stop. */
  signal: AbortSignal;
  /** What the process gets beside (or, with `undefined` values, without) the worker's own environment. */
  env?: NodeJS.ProcessEnv;
  /** Variables that it reads from a pipe. */
  keys?: NodeJS.ProcessEnv;
  /** The learner's job.json, and how it learns. Called only where there is something to do; `folder` is the learner's own. */
  prepare: (folder: string) => Promise<{ job: object; learning: LearningOptions }>;
  /** Which checkpoints are the result's; without it, all that count. */
  select?: (checkpoints: Checkpoint[]) => Checkpoint[];
  /** Shows how far it is. */
  show: (details: TrainHeartbeat) => void;
  /** Called when a rollout or a step became durable. */
  onDurable: () => void;
  /** Whether another attempt would go further: then the result is not kept. */
  isUnfinished?: () => boolean;
}

export async function runLearner(deps: LearnerDependencies, run: LearnerRun): Promise<TrainingResult> {
  const { store, home } = deps;
  const { campaign, name, id } = run;
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
  run.signal.throwIfAborted();
  const record = new TrainingRecord({ ...learning, store, campaign, name, id, folder });
  for (;;) {
    try {
      const result = await learn({ deps, run, record, learning, folder, jobFile });
      if (run.isUnfinished?.()) return result;
      const ref = await keptJson(store, { key, producer: 'train', inputs: refsOf(result) }, () => result);
      await record.end();
      // That of another worker where it was first.
      return await readJson(store, ref, trainingResultSchema);
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error;
    }
    const finished = await findResult(store, key);
    if (finished) return finished;
  }
}

/** Runs the learner from the last state to its end. Throws Overtaken where another worker goes on with the training from another state. */
async function learn(o: {
  deps: LearnerDependencies;
  run: LearnerRun;
  record: TrainingRecord;
  learning: LearningOptions;
  folder: string;
  jobFile: string;
}): Promise<TrainingResult> {
  const { deps, run, record, learning, folder, jobFile } = o;
  const { name, program, limits, show, onDurable, signal, env = {}, keys, python = deps.python } = run;
  const step = await record.restore();
  const command = [python, '-m', 'trainer', program, '--job', jobFile];
  const process = new LearnerProcess({ command, log: join(folder, 'trainer.log'), env, keys, limits });
  try {
    const learner = { deps, name, folder, record, process, show, onDurable, signal, step };
    const result = await new Learning({ ...learning, ...learner }).run();
    return { ...result, checkpoints: run.select?.(result.checkpoints) ?? result.checkpoints };
  } finally {
    await process.stop();
    await record.stored().catch(() => undefined);
  }
}

/** What a learner may say of its own end; anything else is a TrainerDied. */
const OWN_ERRORS: readonly string[] = ['BadJob', 'Diverged', 'SamplerDiffers', 'DiskFull'] satisfies FailureType[];

const died = (why: string) => new OutsideFailure('TrainerDied', `the trainer ${why}`);

/** Answers one learner until it ends. */
export class Learning {
  private readonly progress: TrainHeartbeat;
  private readonly context = Context.current();
  /** Something was done in this attempt that the next one would do again. The first attempt has waited for its slot. */
  private hasPlace = false;
  /** What the last rollouts come to, while the learner goes on with them. */
  private storing: Promise<void> = Promise.resolve();
  /** Aborts when the step that may be paid for has ended. */
  private paying = new AbortController();

  constructor(
    private readonly o: LearningOptions &
      Pick<TrainingRecordOptions, 'folder'> & {
        deps: Pick<LearnerDependencies, 'store' | 'home' | 'client'>;
        name: string;
        record: TrainingRecord;
        process: LearnerProcess;
        /** Aborts where it is to stop. */
        signal: AbortSignal;
        show: LearnerRun['show'];
        onDurable: LearnerRun['onDurable'];
        /** The step that it goes on from. */
        step?: number;
      },
  ) {
    const { steps, step = 0 } = o;
    const begins = step > 0 && ({ continues: true } as const);
    this.progress = { kind: 'train', step, ...(steps && { steps }), ...begins, waitsFor: 'the trainer to start' };
  }

  async run(): Promise<TrainingResult> {
    this.heartbeat();
    try {
      return await this.answer();
    } finally {
      this.paying.abort();
      await this.storing.catch(() => undefined);
    }
  }

  private async answer(): Promise<TrainingResult> {
    const { process, folder, signal } = this.o;
    signal.addEventListener('abort', () => void process.stop(), { once: true });
    if (signal.aborted) void process.stop(); // the event has passed
    for await (const message of process.messages()) {
      this.waitsFor(undefined);
      // What a step has made counts once its rollouts do.
      if (message.type !== 'step' && message.type !== 'progress') await this.storing;
      switch (message.type) {
        case 'ready':
          this.progress.step = message.step;
          delete this.progress.continues;
          break;
        case 'rollouts':
          await this.patiently(async () => this.o.bill?.permit((this.paying = new AbortController()).signal));
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
          await this.patiently(() => this.o.record.addCheckpoint(message));
          this.o.onDurable();
          break;
        case 'done':
          return this.patiently(() => this.o.record.result(message.step));
        case 'interrupted':
          signal.throwIfAborted();
          throw died(`was stopped at step ${message.step}`);
        case 'error': {
          const { type, message: text } = message.error;
          throw new OutsideFailure(OWN_ERRORS.includes(type) ? (type as FailureType) : 'TrainerDied', text);
        }
      }
      this.heartbeat();
    }
    signal.throwIfAborted();
    throw died(`exited without an error message; see ${join(folder, 'trainer.log')}`);
  }

  /** A step is paid for once it has been made, and again where it is made again. */
  private async pay({
    forward_tokens: forward,
    trained_tokens: trained,
  }: Record<string, number | null>): Promise<void> {
    const { bill } = this.o;
    if (bill && typeof forward === 'number' && typeof trained === 'number') await bill.count({ forward, trained });
    this.paying.abort();
  }

  /** Makes the rollouts of one step with the policy as it is now; answers with the batch file. */
  private async rollouts(request: RolloutsRequest): Promise<object> {
    const { folder, batch, deps, name } = this.o;
    const { step, tasks, group_size: groupSize, content, ahead = 0 } = request;
    if (!(await this.patiently(() => this.o.record.permit(request)))) return { type: 'spent' };
    const { maskReadOnlyTurns, everyStepAnew, ...options } = batch;
    const file = join(folder, 'batch.jsonl');
    const aside = asideIn(deps.home);
    let tell = (): void => undefined;
    const isTold = new Promise<void>((done) => (tell = done));
    let told: { records: Rollout[]; written: Promise<void> } | undefined;
    // The learner goes on once they are played, and they are stored meanwhile.
    const give = async (records: Rollout[], whole: string[]): Promise<void> => {
      if (told && told.records.some((one, n) => one !== records[n] && digest(one) !== digest(records[n])))
        throw new Overtaken(`another worker has stored other rollouts of step ${step + 1}`);
      const batch = { records, tasks: whole, groupSize, content, maskReadOnlyTurns, file, aside };
      told ??= { records, written: writeTrainingBatch(batch).then(tell) };
      await told.written.catch((error: unknown) => {
        told = undefined;
        throw error;
      });
    };
    let trained = tasks;
    /** Broken rollouts of groups that an earlier attempt has left out: their user or judge is not asked again. */
    let leftOut = 0;
    this.storing = this.patiently(async (onScored) => {
      const policy = await this.o.record.policy({ step: step - ahead, policy: request.policy });
      const noteDurable = countDurable(this.o.onDurable);
      const asked = trained;
      const { summary, records, outcomes } = await rollOut({
        ...options,
        ...(everyStepAnew && { step }),
        purpose: 'training',
        title: `${name}: training step ${step + 1}`,
        policy,
        tasks: asked,
        attempts: groupSize,
        store: deps.store,
        client: deps.client,
        signal: this.o.signal,
        onPlayed: (records) => void give(records, asked).catch(() => undefined), // it is given once more
        onProgress: ({ done, total, broken, turns }) => {
          this.progress.rollouts = { done, total };
          if (turns > 0) delete this.progress.waitsFor;
          onScored(done - broken);
          noteDurable({ done, broken });
          this.heartbeat();
        },
      });
      trained = content === 'rows' ? withoutUnanswered(asked, outcomes) : asked;
      // A group is never trained on in part.
      const failure = brokenFailure(
        outcomes.filter(({ task }) => trained.includes(task)),
        `step ${step + 1}`,
      );
      if (failure) {
        leftOut += outcomes.filter(({ status, task }) => status === 'broken' && !trained.includes(task)).length;
        throw failure;
      }
      // With the base model as it is, on tasks and under keys of the base rollouts, these are the same rollouts.
      const shared = !everyStepAnew && policy.adapters.length === 0 && policy.prompt === undefined;
      await give(await records(), trained);
      this.o.record.addBatch(step, { ...summary, broken: summary.broken + leftOut }, { shared });
    });
    this.storing.catch(() => undefined); // whoever awaits it next is told
    await Promise.race([isTold, this.storing]);
    // The update that they are for is the one that a lost host may cost: what it starts from is on no host alone.
    this.waitsFor('its state to be stored');
    await this.patiently(() => this.o.record.stored());
    return { type: 'rollouts', file, ...(trained.length < tasks.length && { tasks: trained }) };
  }

  private async reply(request: ReplyRequest): Promise<object> {
    const { reply } = this.o;
    if (!reply) throw died('asks for a reply, and its worker has no language model');
    const answer = await this.patiently(() => {
      this.waitsFor('the language model');
      return reply(request);
    });
    if (answer === 'spent') return { type: 'spent' };
    return { type: 'text' in answer ? 'reply' : 'no_reply', ...answer };
  }

  /**
   * The result of the first attempt that has one; each goes on from what those before have done. The learner keeps its slot while it waits, if it
   * has done anything in it. This is not a second owner of retries: a training that Temporal started anew would load its model again for
   * every hiccup of the policy server.
   */
  private async patiently<Result>(attempt: (onMore: (done: number) => void) => Promise<Result>): Promise<Result> {
    const patienceMs = this.context.info.attempt > 1 && !this.hasPlace ? 0 : LEARNER.patienceMs;
    const { signal } = this.o;
    let most = 0;
    let failures: { since: number; count: number } | undefined;
    for (;;) {
      try {
        const result = await attempt((done) => {
          if (done > most) failures = undefined;
          most = Math.max(most, done);
        });
        this.hasPlace = true;
        this.waitsFor(undefined);
        return result;
      } catch (error) {
        signal.throwIfAborted();
        failures ??= { since: performance.now(), count: 0 };
        const waitMs = LEARNER.delayMs((failures.count += 1));
        const isLate = performance.now() - failures.since + waitMs > patienceMs;
        const isMine = error instanceof OutsideFailure && error.retryable && !forAnotherAttempt.includes(error.type);
        if (isLate || !isMine) throw error;
        this.waitsFor(`${awaited[error.type] ?? 'another attempt'}: ${error.message}`);
        await sleep(waitMs, undefined, { signal });
      }
    }
  }

  private waitsFor(what: string | undefined): void {
    if (what === undefined) delete this.progress.waitsFor;
    else this.progress.waitsFor = what;
    this.heartbeat();
  }

  private readonly heartbeat = (): void => this.o.show({ ...this.progress });
}

/** Leaves out the groups in which a simulated user or a judge failed at a conversation; returns all tasks if no group would be left. */
function withoutUnanswered(tasks: string[], outcomes: readonly Outcome[]): string[] {
  const isUnanswered = (one: Outcome) =>
    one.status === 'broken' && OF_A_CONVERSATION.some((type) => type === one.error.type);
  const unanswered = new Set(outcomes.filter(isUnanswered).map(({ task }) => task));
  return unanswered.size < tasks.length ? tasks.filter((task) => !unanswered.has(task)) : tasks;
}

/** Another worker's server may have the right base model; a step that was lost is done again by another learner; and what another has taken over is its. */
const forAnotherAttempt: FailureType[] = ['WrongBaseModel', 'TrainerDied', 'Superseded'];

/** What a learner waits for, by the failure's type. */
const awaited: Partial<Record<FailureType, string>> = {
  PolicyServerUnavailable: 'the policy server',
  PolicyServerTimeout: 'the policy server',
  PolicyServerError: 'the policy server',
  PolicyServerBusy: 'the policy server',
  PolicyNotLoaded: 'the policy server',
  EnvironmentDied: 'the environment',
  EnvironmentFailed: 'the environment',
  PartnerUnavailable: 'a partner model',
  PartnerTimeout: 'a partner model',
  LanguageModelUnavailable: 'the language model',
  LanguageModelFailed: 'the language model',
  DiskFull: 'room on the disk',
  StoreUnavailable: 'the store',
};

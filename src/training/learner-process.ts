/** A learner: a process that improves a policy and requests rollouts from its worker, over JSON lines (docs/learner-protocol.md). */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { projectRoot } from '../store/project-root';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { promptSchema } from '../domain/rollout';
import { keyPipe } from '../domain/secrets';
import { limitSilence, programEnvironment } from '../policy/python';

const step = z.number().int().nonnegative();
/** The policy so far: the folder of an adapter, a prompt, or the base model. */
const learnedSchema = z.union([
  z.strictObject({ adapter: z.string() }),
  z.strictObject({ prompt: promptSchema }),
  z.strictObject({ base: z.literal(true) }),
]);
export type Learned = z.infer<typeof learnedSchema>;

const messageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready'), step }),
  z.object({
    type: z.literal('rollouts'),
    id: z.number().int(),
    step,
    tasks: z.array(z.string()),
    group_size: z.number().int(),
    policy: learnedSchema,
    content: z.enum(['rows', 'messages']).default('rows'),
  }),
  z.object({
    type: z.literal('reply'),
    id: z.number().int(),
    step,
    messages: z.array(z.object({ role: z.enum(['system', 'user', 'assistant']), content: z.string() })).min(1),
    /** Number of earlier requests with the same messages; each has its own reply. */
    again: z.number().int().nonnegative().default(0),
  }),
  z.object({ type: z.literal('progress'), step, done: z.number().int(), total: z.number().int() }),
  z.object({ type: z.literal('step'), step, metrics: z.record(z.string(), z.number().nullable()) }),
  z.object({ type: z.literal('checkpoint'), step, policy: learnedSchema }),
  z.object({ type: z.literal('done'), step }),
  z.object({ type: z.literal('interrupted'), step }),
  z.object({ type: z.literal('error'), error: z.object({ type: z.string(), message: z.string() }) }),
]);
export type LearnerMessage = z.infer<typeof messageSchema>;
export type RolloutsRequest = Extract<LearnerMessage, { type: 'rollouts' }>;
export type ReplyRequest = Extract<LearnerMessage, { type: 'reply' }>;

function parseMessage(line: string): LearnerMessage {
  const { data } = jsonText.pipe(messageSchema).safeParse(line);
  if (data) return data;
  throw new OutsideFailure('TrainerDied', `the trainer wrote a line outside the protocol: ${line.slice(0, 200)}`);
}

/** Limit of the time until `ready`: the learner loads libraries and a model, on cores that others use too. */
const START_SECONDS = 600;
/** Time to end the update and write a checkpoint. The rest of the 30 s that a stopping host has is for uploading it. */
const STOP_SECONDS = 15;
export interface LearnerLimits {
  stallSeconds: number;
  startSeconds?: number;
  stopSeconds?: number;
}

interface LearnerCommand {
  command: readonly string[];
  log: string;
  env: NodeJS.ProcessEnv;
  keys?: NodeJS.ProcessEnv | undefined;
  limits: LearnerLimits;
}

export class LearnerProcess {
  private readonly child: ChildProcess;
  private readonly limits: Required<LearnerLimits>;
  private readonly exited: Promise<void>;
  private readonly lines: AsyncIterator<string>;
  private broken: Error | undefined;

  /** Runs in the project's folder; `log` collects stderr; `env` is added to the programs' environment. */
  constructor({ command, log, env, keys, limits }: LearnerCommand) {
    this.limits = { startSeconds: START_SECONDS, stopSeconds: STOP_SECONDS, ...limits };
    const [program = '', ...args] = command;
    const stderr = openSync(log, 'a');
    const pipe = keyPipe(keys);
    try {
      this.child = spawn(program, args, {
        cwd: projectRoot,
        env: { ...programEnvironment(), ...env, ...pipe.env },
        stdio: ['pipe', 'pipe', stderr, ...pipe.stdio],
      });
      pipe.send(this.child);
    } catch (error) {
      throw notStarted(error);
    } finally {
      closeSync(stderr);
    }
    // Read from the start: Node discards what a process that has exited left unread. Without free file handles there are no pipes, and `broken` is set.
    this.lines = createInterface({ input: this.child.stdout ?? Readable.from([]) })[Symbol.asyncIterator]();
    this.exited = new Promise((done) => {
      this.child.once('exit', () => done());
      this.child.once('error', (error) => {
        this.broken = error;
        done();
      });
    });
    // messages() reports the end of a learner, not the write that failed.
    this.child.stdin?.on('error', () => undefined);
  }

  /** Yields its messages until it ends. Throws TrainerHung if it has the turn and sends none in time, TrainerDied for a bad line. */
  async *messages(): AsyncGenerator<LearnerMessage> {
    const { startSeconds, stallSeconds } = this.limits;
    let limit = { seconds: startSeconds, late: `was not ready after ${startSeconds} s` };
    for (;;) {
      const next = await this.withinLimit(this.lines.next(), limit);
      if (this.broken) throw notStarted(this.broken);
      if (next.done) return;
      yield parseMessage(next.value);
      limit = { seconds: stallSeconds, late: `said nothing for ${stallSeconds} s (workers.stallSeconds)` };
    }
  }

  send(message: object): void {
    this.child.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  /** True if it was killed with SIGKILL, as the kernel does when memory runs out. */
  get wasKilled(): boolean {
    return this.child.signalCode === 'SIGKILL';
  }

  /** Stops it with SIGTERM, upon which it saves; kills it if that takes too long. */
  async stop(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill('SIGTERM');
    this.child.stdin?.end();
    const { end } = limitSilence(this.child, this.limits.stopSeconds, () => undefined);
    await this.exited;
    end();
  }

  private withinLimit<T>(awaited: Promise<T>, { seconds, late }: { seconds: number; late: string }): Promise<T> {
    return new Promise<T>((done, broken) => {
      const fail = () => broken(new OutsideFailure('TrainerHung', `the trainer ${late}`));
      const { end } = limitSilence(this.child, seconds, fail);
      void awaited.then(done, broken).finally(end);
    });
  }
}

const notStarted = (error: unknown): Error =>
  new OutsideFailure('TrainerDied', `the trainer can't be started: ${reasonOf(error)}`);

export interface GpuGroups {
  /** Runs one trainer on a free group; `env` is to be added to its environment. */
  use<R>(run: (env: NodeJS.ProcessEnv) => Promise<R>): Promise<R>;
}

/** Cuts the GPUs that the worker sees (`visible`: CUDA_VISIBLE_DEVICES) into groups of `perTrainer`; with 0 every trainer sees them all. */
export function dealGpus(o: { slots: number; perTrainer: number; visible: string | undefined }): GpuGroups {
  const { slots, perTrainer, visible } = o;
  if (perTrainer === 0) return { use: (run) => run({}) };
  const needed = slots * perTrainer;
  const gpus = visible?.split(',').filter(Boolean) ?? Array.from({ length: needed }, (_, gpu) => String(gpu));
  if (gpus.length < needed) {
    throw new Error(
      `CUDA_VISIBLE_DEVICES is "${visible}", but ${slots} trainers of ${perTrainer} GPUs need ${needed}; ` +
        'name more, or lower workers.gpuSlots or workers.gpusPerTrainer',
    );
  }
  const free = Array.from({ length: slots }, (_, n) => gpus.slice(n * perTrainer, (n + 1) * perTrainer).join(','));
  return {
    async use(run) {
      const group = free.shift();
      if (group === undefined) throw new Error('more trainers than gpu slots');
      try {
        return await run({ CUDA_VISIBLE_DEVICES: group });
      } finally {
        free.push(group);
      }
    },
  };
}

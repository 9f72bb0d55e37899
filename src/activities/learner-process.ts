/**
 * A learner: a process that improves a policy and asks its worker for rollouts, over JSON lines (docs/learner-protocol.md). The GRPO trainer
 * is one. Invariant: whoever starts one sees it end.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync, closeSync } from 'node:fs';
import { createInterface, type Interface } from 'node:readline';
import { z } from 'zod';
import { promptSchema } from '../domain/rollout';
import { projectRoot } from '../policy/python';
import { fail } from './context';

const step = z.number().int().nonnegative();
/** What was learned so far: the folder of an adapter, or a prompt. */
const learnedSchema = z.union([z.strictObject({ adapter: z.string() }), z.strictObject({ prompt: promptSchema })]);
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
    /** Token rows to train on, or whole conversations to read. */
    content: z.enum(['rows', 'messages']).default('rows'),
  }),
  z.object({ type: z.literal('step'), step, metrics: z.record(z.string(), z.number().nullable()) }),
  z.object({ type: z.literal('checkpoint'), step, policy: learnedSchema }),
  z.object({ type: z.literal('done'), step }),
  z.object({ type: z.literal('interrupted'), step }),
  z.object({ type: z.literal('error'), error: z.object({ type: z.string(), message: z.string() }) }),
]);
export type LearnerMessage = z.infer<typeof messageSchema>;

export class LearnerProcess {
  private readonly child: ChildProcess;
  private readonly lines: Interface;
  private readonly ended: Promise<unknown>;

  /** Runs in the project's folder; `log` collects stderr; `env` is added to the environment. */
  constructor({ command, log, env }: { command: readonly string[]; log: string; env: NodeJS.ProcessEnv }) {
    const [program = '', ...args] = command;
    const stderr = openSync(log, 'a');
    this.child = spawn(program, args, {
      cwd: projectRoot,
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', stderr],
    });
    closeSync(stderr);
    if (!this.child.stdout || !this.child.stdin) throw new Error('the learner was started without pipes');
    this.lines = createInterface({ input: this.child.stdout });
    this.ended = once(this.child, 'close');
    this.ended.catch(() => undefined);
    // A learner that ended between two lines is seen by messages(), not by the write that failed.
    this.child.stdin.on('error', () => undefined);
  }

  /** Its messages until it ends. Throws TrainerHung if `stallSeconds` pass without one while it has the turn, TrainerDied on bad lines. */
  async *messages(stallSeconds: number): AsyncGenerator<LearnerMessage> {
    const lines = this.lines[Symbol.asyncIterator]();
    for (;;) {
      let timer: NodeJS.Timeout | undefined;
      const stalled = new Promise<never>((_, reject) => {
        timer = setTimeout(
          () => reject(fail('TrainerHung', `the trainer said nothing for ${stallSeconds} s`)),
          stallSeconds * 1000,
        );
      });
      try {
        const next = await Promise.race([lines.next(), stalled]);
        if (next.done) return;
        yield parse(next.value);
      } finally {
        clearTimeout(timer);
      }
    }
  }

  send(message: object): void {
    this.child.stdin?.write(`${JSON.stringify(message)}\n`);
  }

  /** Asks it to save and waits; after `graceSeconds` it is killed. Safe to call at any time. */
  async stop(graceSeconds: number): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.child.kill('SIGTERM');
    this.child.stdin?.end();
    const timer = setTimeout(() => this.child.kill('SIGKILL'), graceSeconds * 1000);
    await this.ended.catch(() => undefined);
    clearTimeout(timer);
  }
}

function parse(line: string): LearnerMessage {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    // No JSON is outside the protocol like any other line.
  }
  const parsed = messageSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw fail('TrainerDied', `the trainer wrote a line outside the protocol: ${line.slice(0, 200)}`);
}

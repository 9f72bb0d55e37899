/** A trainer process and its JSON lines (docs/trainer-protocol.md). Invariant: whoever starts one sees it end. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync, closeSync } from 'node:fs';
import { createInterface, type Interface } from 'node:readline';
import { z } from 'zod';
import { fail } from './context';
import { projectRoot } from './python';

const step = z.number().int().nonnegative();
const trainerMessageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready'), step }),
  z.object({
    type: z.literal('rollouts'),
    id: z.number().int(),
    step,
    tasks: z.array(z.string()),
    group_size: z.number().int(),
    adapter: z.string(),
  }),
  z.object({ type: z.literal('step'), step, metrics: z.record(z.string(), z.number().nullable()) }),
  z.object({ type: z.literal('checkpoint'), step, adapter: z.string() }),
  z.object({ type: z.literal('done'), step }),
  z.object({ type: z.literal('interrupted'), step }),
  z.object({ type: z.literal('error'), error: z.object({ type: z.string(), message: z.string() }) }),
]);
export type TrainerMessage = z.infer<typeof trainerMessageSchema>;

export class TrainerProcess {
  private readonly child: ChildProcess;
  private readonly lines: Interface;
  private readonly ended: Promise<unknown>;

  /** `log` collects the trainer's stderr; `env` is added to the environment. */
  constructor({ python, job, log, env }: { python: string; job: string; log: string; env: NodeJS.ProcessEnv }) {
    const stderr = openSync(log, 'a');
    this.child = spawn(python, ['-m', 'trainer', 'train', '--job', job], {
      cwd: projectRoot,
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', stderr],
    });
    closeSync(stderr);
    if (!this.child.stdout || !this.child.stdin) throw new Error('the trainer was started without pipes');
    this.lines = createInterface({ input: this.child.stdout });
    this.ended = once(this.child, 'close');
    this.ended.catch(() => undefined);
    // A trainer that ended between two lines is seen by messages(), not by the write that failed.
    this.child.stdin.on('error', () => undefined);
  }

  /** Its messages until it ends. Throws TrainerHung if `stallSeconds` pass without one while it has the turn, TrainerDied on bad lines. */
  async *messages(stallSeconds: number): AsyncGenerator<TrainerMessage> {
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
        const parsed = trainerMessageSchema.safeParse(JSON.parse(next.value));
        if (!parsed.success)
          throw fail('TrainerDied', `the trainer wrote a line outside the protocol: ${next.value.slice(0, 200)}`);
        yield parsed.data;
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

/**
 * Watches a sandbox's thread from outside: what the interpreter cannot interrupt is killed. Invariant: only a call that has had its CPU
 * time, or a very long wall time, is; a pause of the watching thread, with answers waiting to be read, is not taken for one of the other.
 */
import { cpuMsOf } from './thread-clock';

const LOOK_MS = 100;

/** The returned function ends it. */
export function watchThread(o: {
  /** cpuMsOf() takes it. */
  thread: string | undefined;
  limits: { cpuMs: number; wallMs: number };
  /** How many calls were answered; undefined while none waits for its answer. */
  progress: () => number | undefined;
  /** CPU time that calls have used since it was told last. */
  used: (ms: number) => void;
  kill: (reason: string) => void;
}): () => void {
  let last = cpuMsOf(o.thread);
  let since: { answered: number; cpu: number; wall: number } | undefined;
  const look = setInterval(() => {
    const [cpu, wall, answered] = [cpuMsOf(o.thread), performance.now(), o.progress()];
    if (answered !== undefined) o.used(Math.max(0, cpu - last || 0));
    last = cpu;
    if (answered === undefined) since = undefined;
    else if (since?.answered !== answered) since = { answered, cpu, wall };
    if (!since) return;
    const overCpu = cpu - since.cpu >= o.limits.cpuMs;
    if (!overCpu && wall - since.wall < o.limits.wallMs) return;
    // The answers that wait are read first.
    setImmediate(() => {
      if (o.progress() !== answered) return;
      o.kill(`no answer within ${overCpu ? o.limits.cpuMs : o.limits.wallMs} ms`);
    });
  }, LOOK_MS);
  look.unref();
  return () => clearInterval(look);
}

/** Processes that stand still (SIGSTOP) and come back: shorter than the limit on silence, and longer, when another worker has their work. */
import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { repository } from '../../support/campaign-run';
import { environmentOf, services, signal } from '../../support/faults-processes';
import type { Scenario } from '../../support/faults-scenario';
import type { Phase, ProcessName, Session } from '../../support/faults-session';
import { shopPlugin } from '../../support/kinds';

const SHORT_SECONDS = 6;
/** Longer than the campaign file's limit on silence, by enough for the other worker to be in the middle of the work. */
const LONG_SECONDS = 40;

const held: Scenario = {
  name: 'stop: each process stands still and goes on',
  file: 'small',
  async act(session) {
    session.start();
    const plan: [Phase, ProcessName[]][] = [
      ['base rollouts', ['rollouts-worker', 'policy-server', 'temporal', 'supervisor']],
      ['training', ['trainer', 'gpu-worker', 'control-worker']],
      ['evaluation', [...services]],
    ];
    for (const [phase, names] of plan) {
      await session.phase(phase);
      for (const name of names) if (!session.run.ended) await session.hold(name, SHORT_SECONDS);
    }
  },
};

/** A second worker of the same kind, as on another machine: its stdin stays open as long as this process lives. */
async function secondWorker(session: Session, kind: 'rollouts' | 'gpu' | 'control'): Promise<void> {
  const first = await session.pidOf(`${kind}-worker`);
  if (first === undefined) throw new Error(`there is no ${kind}-worker`);
  const program = [`${repository}/bin/campaign`, 'worker', '--queues', kind, '--plugin', shopPlugin];
  const worker = spawn(process.execPath, program, {
    cwd: repository,
    env: environmentOf(first),
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ready = new Promise<void>((done) => worker.stdout.once('data', () => done()));
  const exit = new Promise((done) => worker.once('exit', done));
  session.cleanups.push(() => void worker.kill('SIGKILL'));
  await Promise.race([ready, exit, sleep(120_000)]);
  if (worker.exitCode !== null) throw new Error(`the second ${kind} worker ended with ${worker.exitCode}`);
  // It leaves as it is asked to: nothing of it may be there when the checks look.
  void session.run.exit.then(() => worker.stdin.end());
}

const takenOver = (kind: 'rollouts' | 'gpu' | 'control', phase: Phase): Scenario => ({
  name: `stop: two ${kind} workers think that a task is theirs`,
  file: 'small',
  async act(session) {
    session.start();
    await session.phase(phase);
    await secondWorker(session, kind);
    await session.hold(`${kind}-worker`, LONG_SECONDS);
  },
});

/** The supervisor stands still for longer than everybody's patience, and a service dies meanwhile. */
const blind: Scenario = {
  name: 'stop: the supervisor stands still while a worker is killed',
  file: 'small',
  async act(session) {
    session.start();
    await session.phase('training');
    const holding = session.hold('supervisor', LONG_SECONDS);
    const pid = await session.pidOf('gpu-worker');
    if (pid !== undefined) signal(pid, 'SIGKILL');
    await holding;
  },
};

export const stops: Scenario[] = [
  held,
  takenOver('rollouts', 'base rollouts'),
  takenOver('gpu', 'training'),
  takenOver('control', 'selection'),
  blind,
];

/** kill -9: each kind of process in each phase, around the renames of checkpoints, during the first start, and all of them at once. */
import { existsSync, watch } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { namesIn, trainingsOf } from '../../support/faults-home';
import { serviceOf, services, signal, trainersOf } from '../../support/faults-processes';
import type { Scenario } from '../../support/faults-scenario';
import { phases, type ProcessName, type Session } from '../../support/faults-session';

const eachPhase = (name: ProcessName): Scenario => ({
  name: `kill: ${name} in every phase`,
  file: 'small',
  async act(session) {
    session.start();
    for (const phase of phases) {
      await session.phase(phase);
      await session.kill(name);
    }
  },
});

/** A trainer lives in one phase: it is killed while it starts, before its first step, and between steps. */
const trainers: Scenario = {
  name: 'kill: trainer, as it starts and between steps',
  file: 'small',
  async act(session) {
    session.start();
    await session.kill('trainer');
    for (const steps of [1, 5, 8]) {
      await session.untilSteps(steps);
      await session.kill('trainer');
    }
  },
};

/** Resolves when a file or folder that the pattern fits comes or goes in one of the learners' folders. */
function change(session: Session, pattern: RegExp): Promise<void> {
  return new Promise((done) => {
    const watchers = trainingsOf(session.home).flatMap((training) => {
      const parts = [training, join(training, '.partial')].filter((folder) => existsSync(folder));
      return parts.map((folder) =>
        watch(folder, (_, name) => {
          if (pattern.test(`${folder.slice(training.length)}/${name ?? ''}`)) end();
        }),
      );
    });
    const end = () => {
      for (const watcher of watchers) watcher.close();
      clearInterval(timer);
      done();
    };
    const timer = setInterval(() => (session.run.ended ? end() : undefined), 500);
  });
}

const renames: Scenario = {
  name: 'kill: around the renames of checkpoints and adapters',
  file: 'small',
  async act(session) {
    session.start();
    const folders = () => trainingsOf(session.home).some((training) => namesIn(training).includes('trainer.log'));
    await session.until(folders, 'a training');
    // While it is written, just after its name is there, and while the worker keeps it.
    for (const [pattern, victim] of [
      [/partial/, 'trainer'],
      [/\/checkpoint-\d+$/, 'trainer'],
      [/metrics\.jsonl$/, 'trainer'],
      [/\/checkpoint-\d+$/, 'gpu-worker'],
      [/adapter-|batch\.json/, 'gpu-worker'],
    ] as const) {
      await change(session, pattern);
      if (victim === 'trainer') for (const pid of trainersOf(session.home)) signal(pid, 'SIGKILL');
      else await session.kill(victim);
    }
  },
};

const firstStart: Scenario = {
  name: 'kill: every service during its first start',
  file: 'small',
  async act(session) {
    session.start();
    for (const name of services) {
      await session.until(() => serviceOf(session.home, name) !== undefined, `${name} to be started`);
      const pid = serviceOf(session.home, name);
      if (pid !== undefined) signal(pid, 'SIGKILL');
    }
  },
};

const everything: Scenario = {
  name: 'kill: everything three times, the same command after each',
  file: 'small',
  async act(session) {
    session.start();
    for (const phase of ['base rollouts', 'training', 'router'] as const) {
      await session.phase(phase);
      // In the middle of it, not at its first word.
      await sleep(1000);
      await session.killEverything();
      session.start();
    }
  },
};

export const kills: Scenario[] = [
  ...([...services, 'supervisor'] as const).map(eachPhase),
  trainers,
  renames,
  firstStart,
  everything,
];

/** When a learner's process is left alone, and when it is ended; a GPU has one trainer at a time. */
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  dealGpus,
  type GpuGroups,
  type LearnerLimits,
  type LearnerMessage,
  LearnerProcess,
} from '../../../src/training/learner-process';
import { atEnd } from '../../support/opened';
import { eachTemporaryFolder } from '../../support/temporary-folder';

const script = resolve(__dirname, '../..', 'fixtures', 'learners', 'scripted.mjs');
const READY = ['say', '{"type":"ready","step":0}'];
const DONE = ['say', '{"type":"done","step":0}'];
const limits: LearnerLimits = { stallSeconds: 60 };

let folder: string;
eachTemporaryFolder((made) => (folder = made));

function start(words: string[], more: Partial<LearnerLimits> = {}) {
  const command = [process.execPath, script, ...words];
  const learner = new LearnerProcess({
    command,
    log: join(folder, 'learner.log'),
    env: {},
    limits: { ...limits, ...more },
  });
  atEnd(() => learner.stop());
  return { learner, pid: pidOf(learner) };
}
const pidOf = (learner: LearnerProcess) => (learner as unknown as { child: { pid: number } }).child.pid;
const lives = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

async function said(learner: LearnerProcess, onMessage: (message: LearnerMessage) => void = () => undefined) {
  const types: string[] = [];
  for await (const message of learner.messages()) {
    types.push(message.type);
    onMessage(message);
  }
  return types;
}
const hung = (message: RegExp) => ({ type: 'TrainerHung', message: expect.stringMatching(message) as string });

// What waits for limits in real time waits side by side.
test('one that makes no progress, or is stopped from outside, is ended and leaves its place', async () => {
  const stopped = start([...READY, 'work', '600'], { stallSeconds: 3 });
  const still = [start(['sleep', '600'], { startSeconds: 3 }), start([...READY, 'sleep', '600'], { stallSeconds: 3 })];
  await Promise.all([
    expect(said(stopped.learner, () => process.kill(stopped.pid, 'SIGSTOP'))).rejects.toMatchObject(hung(/3 s/)),
    ...still.map(({ learner }) => expect(said(learner)).rejects.toMatchObject(hung(/3 s/))),
  ]);
  for (const { learner, pid } of [stopped, ...still]) {
    await learner.stop();
    expect(lives(pid)).toBe(false);
  }
});

test('one whose update takes longer than the limit is left alone while it tells of micro-batches, and no longer', async () => {
  const told = (done: number) => ['work', '2', 'say', `{"type":"progress","step":0,"done":${done},"total":3}`];
  const micros = [...READY, ...told(1), ...told(2), ...told(3)];
  const limit = { stallSeconds: 4 };
  const [slow, stuck] = [start([...micros, ...DONE], limit), start([...micros, 'work', '600'], limit)];
  await Promise.all([
    expect(said(slow.learner)).resolves.toEqual(['ready', 'progress', 'progress', 'progress', 'done']),
    expect(said(stuck.learner)).rejects.toMatchObject(hung(/said nothing for 4 s/)),
  ]);
});

test('one that does not hear that it shall stop is killed, whether it works on or sleeps on', async () => {
  const deaf = [
    start(['deaf', ...READY, 'work', '600'], { stopSeconds: 2 }),
    start(['deaf', ...READY, 'sleep', '600'], { stopSeconds: 2 }),
  ];
  const end = async ({ learner, pid }: (typeof deaf)[number]) => {
    await learner.messages().next();
    await learner.stop();
    expect(lives(pid)).toBe(false);
  };
  await Promise.all(deaf.map(end));
});

test('one that is killed from outside is told from one that ends by itself', async () => {
  const [killed, done] = [start([...READY, 'sleep', '600']), start(DONE)];
  await expect(said(killed.learner, () => process.kill(killed.pid, 'SIGKILL'))).resolves.toEqual(['ready']);
  while (lives(done.pid)) await sleep(20);
  await expect(said(done.learner)).resolves.toEqual(['done']);
  await Promise.all([killed.learner.stop(), done.learner.stop()]);
  expect([killed.learner.wasKilled, done.learner.wasKilled]).toEqual([true, false]);
});

test('one that saves for a while when it is asked to stop is let finish', async () => {
  const { learner } = start(['deaf', ...READY, 'work', '4', 'say', '{"type":"interrupted","step":0}']);
  const messages = learner.messages();
  await messages.next();
  const ended = messages.next();
  await sleep(200);
  await learner.stop();
  expect((await ended).value).toMatchObject({ type: 'interrupted' });
});

describe('GPUs', () => {
  const visibleTo = (gpus: GpuGroups): Promise<string | undefined> =>
    gpus.use(async (env) => Promise.resolve(env['CUDA_VISIBLE_DEVICES']));

  test('are dealt in groups out of those that the worker sees, and given back', async () => {
    const gpus = dealGpus({ slots: 2, perTrainer: 2, visible: '4,5,6,7' });
    const failing = gpus.use(async (first) => {
      expect(first).toEqual({ CUDA_VISIBLE_DEVICES: '4,5' });
      await gpus.use(async (second) => {
        expect(second).toEqual({ CUDA_VISIBLE_DEVICES: '6,7' });
        await expect(visibleTo(gpus)).rejects.toThrow('more trainers than gpu slots');
      });
      expect(await visibleTo(gpus)).toBe('6,7');
      throw new Error('the trainer failed');
    });
    await expect(failing).rejects.toThrow('the trainer failed');
    expect([await visibleTo(gpus), await visibleTo(gpus), await visibleTo(gpus)]).toContain('4,5');
  });
});

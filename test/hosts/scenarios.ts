/** Campaigns on hosts that share no disk, and what happens to hosts and to what is between them. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Report } from '../../src/report/model';
import { repository } from '../support/campaign-run';
import { decisionsOf } from '../support/faults-checks';
import { isAlive } from '../support/faults-processes';
import { randomOf } from '../support/faults-random';
import { type Host, until } from '../support/hosts';
import { Between, type Scene } from '../support/hosts-scene';
import { quiet } from '../workflows/environment';

jest.setTimeout(30 * 60_000);
quiet();
/** The campaign's heartbeat timeout (test/support/faults-campaigns.ts), after which a lost host is noticed. */
const HEARTBEAT_SECONDS = 20;
const seed = Number(process.env['HOSTS_SEED'] ?? 1);

let between: Between;
let reference: Report | undefined;
beforeAll(async () => {
  between = await Between.start();
});
afterEach(() => between.closeHosts());
afterAll(() => between?.close());

/** Ten minutes fast. */
const wrongClock = {
  NODE_OPTIONS: `--import ${join(repository, 'test/support/shifted-clock.mjs')}`,
  CLOCK_SHIFT_MS: String(10 * 60_000),
};

interface Lost {
  /** The training on the lost host. */
  name: string;
  /** Finished there. */
  steps: number;
}

/** The same campaign as undisturbed, of which every step was trained on once, and of which each loss has cost an update at most. */
async function expectWhole(scene: Scene, { same = true, lost = [] as Lost[] } = {}): Promise<void> {
  const report = await scene.report();
  const results = await scene.results();
  for (const result of results) {
    expect(result.batches).toHaveLength(result.steps);
    expect(result.brokenRollouts).toBe(0);
    expect(result.again).toBe(0);
  }
  for (const { name, steps } of lost) {
    const training = results.find((one) => name.endsWith(one.name));
    expect(Math.max(...(training?.from ?? []))).toBeGreaterThanOrEqual(steps - 1);
  }
  const trained = results.reduce((sum, result) => sum + result.rollouts, 0);
  const counted = report.rollouts?.byPurpose.find(({ purpose }) => purpose === 'training')?.scored.value;
  expect(counted).toBe(trained);
  if (!same) return;
  reference ??= report;
  expect(decisionsOf(report)).toEqual(decisionsOf(reference));
}

const scenarios: Record<string, () => Promise<void>> = {
  async 'a host leaves after SIGTERM, the next is killed in an update, and a third continues'() {
    const scene = await between.begin({ more: 'arms: []\n' });
    await scene.gpu(scene.one);
    const first = await scene.trained(scene.one, 1);
    await scene.one.leave();
    await scene.gpu(scene.two);
    await scene.trained(scene.two, first.steps + 1);
    const second = await scene.killedInUpdate(scene.two, first.name);
    await scene.gpu(scene.control);
    await expectWhole(scene, { same: false, lost: [first, second] });
  },

  async undisturbed() {
    const scene = await between.begin();
    await scene.gpu(scene.one);
    await expectWhole(scene);
  },

  async 'a host is killed between two steps, and another continues from the last'() {
    const scene = await between.begin();
    await scene.gpu(scene.one);
    const lost = await scene.trained(scene.one, 3);
    scene.one.kill();
    await scene.gpu(scene.two);
    await expectWhole(scene, { lost: [lost] });
  },

  async 'a host is killed in the middle of an update'() {
    const scene = await between.begin();
    await scene.gpu(scene.one);
    const { name } = await scene.trained(scene.one, 2);
    const lost = await scene.killedInUpdate(scene.one, name);
    await scene.gpu(scene.two);
    await expectWhole(scene, { lost: [lost] });
  },

  async 'a host of another instruction set takes over'() {
    const other = { ATEN_CPU_CAPABILITY: 'default', ONEDNN_MAX_CPU_ISA: 'SSE41' };
    const scene = await between.begin({ settings: { two: other } });
    await scene.gpu(scene.one);
    const lost = await scene.trained(scene.one, 3);
    scene.one.kill();
    await scene.gpu(scene.two);
    await expectWhole(scene, { same: false, lost: [lost] });
  },

  async 'a host whose clock is ten minutes off takes over from one that is right, and hands over to it'() {
    const scene = await between.begin({ settings: { two: wrongClock } });
    await scene.gpu(scene.one);
    const first = await scene.trained(scene.one, 2);
    scene.one.kill();
    await scene.gpu(scene.two);
    const second = await scene.trained(scene.two, 5);
    scene.two.kill();
    await scene.gpu(scene.one);
    await expectWhole(scene, { lost: [first, second] });
  },

  async 'a host that is cut off from Temporal stops by itself, and another continues'() {
    // Longer than the limit on silence: a training that ends before it is not stopped.
    const steps = 60;
    const scene = await between.begin({ steps });
    await scene.gpu(scene.one);
    const { name, pid } = await scene.trained(scene.one, 2);
    scene.one.temporal.cut();
    const cutAt = performance.now();
    await scene.gpu(scene.two);
    await until('its learner ends', HEARTBEAT_SECONDS + 10, () => !isAlive(pid));
    console.log(`the learner ended ${((performance.now() - cutAt) / 1000).toFixed(1)} s after the cut`);
    const stopped = scene.one.trainings().find((one) => one.name === name);
    expect(stopped?.steps).toBeLessThan(steps);
    // The other training may come first.
    await until('another continues', 300, () => scene.two.trainings().some((one) => one.name === name));
    scene.one.temporal.mend();
    await expectWhole(scene, { same: false });
  },

  async 'a host that is cut off from the bucket waits'() {
    const scene = await between.begin();
    await scene.gpu(scene.one);
    await scene.trained(scene.one, 2);
    scene.one.s3.cut();
    await sleep(15_000);
    scene.one.s3.mend();
    await expectWhole(scene);
  },

  async 'the S3 server is killed for two minutes'() {
    const scene = await between.begin();
    await scene.gpu(scene.one);
    await scene.trained(scene.one, 2);
    await between.s3.kill();
    await sleep(120_000);
    await between.s3.start();
    await expectWhole(scene);
  },

  async 'a bucket that takes two seconds for every request'() {
    const scene = await between.begin();
    for (const host of [scene.control, scene.one]) host.s3.delay(1000);
    await scene.gpu(scene.one);
    await expectWhole(scene);
  },

  async 'SIGTERM: the training is handed over'() {
    const scene = await between.begin();
    await scene.gpu(scene.one);
    const { name, steps } = await scene.trained(scene.one, 3);
    const begun = performance.now();
    await scene.one.leave();
    expect((performance.now() - begun) / 1000).toBeLessThan(30);
    await scene.gpu(scene.two);
    // Nothing is lost: another host continues from its last finished step.
    await expectWhole(scene, { lost: [{ name, steps: steps + 1 }] });
  },

  async 'all of it at random'() {
    const random = randomOf('hosts', seed);
    const scene = await between.begin({ steps: 12, settings: { one: wrongClock } });
    let [here, there] = [scene.one, scene.two];
    const lost: Lost[] = [];
    const move = async () => {
      [here, there] = [there, here];
      await scene.gpu(here);
    };
    const away = async (wire: Host['s3'], seconds: number) => {
      wire.cut();
      await sleep(seconds * 1000);
      wire.mend();
    };
    const disturbances: Record<string, () => Promise<void>> = {
      async kill() {
        here.kill();
        lost.push(...here.trainings().filter(({ steps }) => steps > 0 && steps < 12));
        await move();
      },
      async leave() {
        await here.leave();
        await move();
      },
      temporal: () => away(here.temporal, random.between(5, HEARTBEAT_SECONDS + 20)),
      bucket: () => away(here.s3, random.between(5, 30)),
      async server() {
        await between.s3.kill();
        await sleep(random.between(5, 40) * 1000);
        await between.s3.start();
      },
      async slow() {
        for (const ms of [1000, 0]) {
          here.s3.delay(ms);
          await sleep(ms * 20);
        }
      },
    };
    await scene.gpu(here);
    await scene.trained(here, 1);
    for (let n = 0; n < 5; n++) {
      await sleep(random.between(0, 10) * 1000);
      const name = random.pick(Object.keys(disturbances));
      console.log(`${n + 1}: ${name}`);
      await disturbances[name]!();
    }
    await expectWhole(scene, { same: false, lost });
  },
};

/** Tests of the scenarios that are asked for. Those that compare with the undisturbed one want it before them. */
export const hosts = (isWanted: (name: string) => boolean): void =>
  test.each(Object.keys(scenarios).filter(isWanted))('%s', async (name) => {
    const begun = performance.now();
    await scenarios[name]!();
    console.log(`ok   ${name}: ${Math.round((performance.now() - begun) / 1000)} s`);
  });

/** Campaigns on hosts that share no disk, and what happens to hosts and to what is between them (`make test-hosts`, ONLY=regexp of scenarios). */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { openS3Store } from '../../src/artifacts/s3-store';
import { type Report, reportSchema } from '../../src/report/model';
import { trainingResultSchema } from '../../src/domain/results';
import { repository, writeCampaign } from '../support/campaign-run';
import { campaignFiles } from '../support/faults-campaigns';
import { decisionsOf } from '../support/faults-checks';
import { Host, until } from '../support/hosts';
import { bucket, type S3Server, startS3Server } from '../support/s3-server';
import { devServer, quiet } from '../workflows/environment';

jest.setTimeout(30 * 60_000);
quiet();
const model = join(repository, 'models', 'base');
const POOL = 'hosts';
/** Of the campaign (test/support/faults-campaigns.ts): a host that is gone is noticed after it. */
const HEARTBEAT_SECONDS = 20;
const only = new RegExp(process.env['ONLY'] ?? '');

let temporal: TestWorkflowEnvironment;
let s3: S3Server;
let folder: string;
let hosts: Host[] = [];
let campaigns = 0;
let reference: Report | undefined;
beforeAll(async () => {
  [temporal, s3] = await Promise.all([devServer(), startS3Server()]);
  folder = mkdtempSync(join(tmpdir(), 'test-hosts-'));
}, 120_000);
afterEach(() => hosts.splice(0).forEach((host) => host.close()));
afterAll(async () => {
  await temporal?.teardown();
  await s3?.close();
  rmSync(folder, { recursive: true, force: true });
});

const portOf = (address: string): number => Number(/\d+$/.exec(address)?.[0]);

class Scene {
  private constructor(
    readonly name: string,
    readonly control: Host,
    readonly one: Host,
    readonly two: Host,
  ) {}

  /** A campaign that has been started, on a host with its control worker; those with GPUs are up to the scenario. */
  static async begin(o: { two?: Record<string, string>; steps?: number } = {}): Promise<Scene> {
    const name = `hosts-${campaigns++}`;
    const settings = { ...s3.env, CAMPAIGN_STORE: `s3://${bucket}/${name}` };
    const make = (host: string, more = {}) =>
      Host.make({
        name: host,
        folder: join(folder, name),
        temporalPort: portOf(temporal.address),
        s3Port: portOf(s3.env['AWS_ENDPOINT_URL_S3']!),
        settings: { ...settings, ...more },
      });
    hosts = await Promise.all([make('control'), make('one'), make('two', o.two)]);
    const [control, one, two] = hosts as [Host, Host, Host];
    const file = join(folder, name, 'campaign.yaml');
    const lines = campaignFiles.small
      .replace('workers: {', `workers: { pool: ${POOL}-${name},`)
      .replace('steps: 6', `steps: ${o.steps ?? 6}`);
    writeCampaign({ file, name, model, lines });
    const scene = new Scene(name, control, one, two);
    await control.control();
    await scene.command('start', file);
    return scene;
  }

  async command(...words: string[]): Promise<string> {
    const args = ['--home', this.control.home.root, ...words, '--temporal-address', temporal.address];
    const { stdout } = await promisify(execFile)(join(repository, 'bin/campaign'), args, { env: this.control.env });
    return stdout;
  }

  gpu = (host: Host): Promise<void> => host.gpu(`${POOL}-${this.name}`, model);

  /** The first training that has come to a step on the host. */
  trained = (host: Host, steps: number) =>
    until(`${host.name} has trained ${steps} steps`, 600, () => host.trainings().find((one) => one.steps >= steps));

  async report(): Promise<Report> {
    // On a busy machine a look may find nobody in time.
    const status = () => this.command('status', this.name, '--json').catch(() => '{}');
    const hasEnded = async () => (JSON.parse(await status()) as { status?: string }).status === 'COMPLETED';
    await until('the campaign ends', 1200, hasEnded);
    const text = await this.command('report', this.name, '--json');
    return reportSchema.parse(JSON.parse(text));
  }

  /** Of every training, what its result says. */
  async results() {
    const { env } = this.control;
    const before = { ...process.env };
    Object.assign(process.env, s3.env);
    try {
      const cache = join(folder, this.name, 'cache');
      const store = openS3Store({ url: env['CAMPAIGN_STORE']!, cache, cacheBytes: 1e9 });
      const { entries } = await store.contents();
      const ended = entries.filter(({ key }) => /^training\/[0-9a-f]{64}$/.test(key));
      return await Promise.all(
        ended.map(async ({ ref }) => {
          const result = trainingResultSchema.parse(JSON.parse((await store.read(ref)).toString()));
          const batches = (await store.provenance(result.metrics)).inputs;
          return { ...result, batches };
        }),
      );
    } finally {
      process.env = before;
    }
  }
}

/** The same campaign as undisturbed, of which every step was trained on once. */
async function expectWhole(scene: Scene, { same = true } = {}): Promise<void> {
  const report = await scene.report();
  reference ??= report;
  const results = await scene.results();
  for (const result of results) {
    expect(result.batches).toHaveLength(result.steps);
    expect(result.brokenRollouts).toBe(0);
    if (same) expect(result.superseded).toBeUndefined();
  }
  const trained = results.reduce((sum, result) => sum + result.rollouts, 0);
  const counted = report.rollouts?.byPurpose.find(({ purpose }) => purpose === 'training')?.scored.value;
  expect(counted).toBe(trained);
  if (same) expect(decisionsOf(report)).toEqual(decisionsOf(reference));
}

const scenarios: Record<string, () => Promise<void>> = {
  async undisturbed() {
    const scene = await Scene.begin();
    await scene.gpu(scene.one);
    await expectWhole(scene);
  },

  async 'a host is killed between two steps, and another goes on from the last'() {
    const scene = await Scene.begin();
    await scene.gpu(scene.one);
    const { name, steps } = await scene.trained(scene.one, 3);
    scene.one.kill();
    await scene.gpu(scene.two);
    const there = await until('the other host goes on', 120, () =>
      scene.two.trainings().find((one) => one.name === name),
    );
    // Its metrics are those of the host that is gone.
    await until('its first step', 60, () =>
      scene.two.trainings().some((one) => one.name === name && one.steps >= steps - 1),
    );
    expect(there.name).toBe(name);
    await expectWhole(scene);
  },

  async 'a host of another instruction set takes over'() {
    const scene = await Scene.begin({ two: { ATEN_CPU_CAPABILITY: 'default', ONEDNN_MAX_CPU_ISA: 'SSE41' } });
    await scene.gpu(scene.one);
    await scene.trained(scene.one, 3);
    scene.one.kill();
    await scene.gpu(scene.two);
    await expectWhole(scene, { same: false });
    for (const { superseded } of await scene.results()) expect(superseded?.rollouts ?? 0).toBeLessThanOrEqual(8);
  },

  async 'a host that is cut off from Temporal stops by itself, and another goes on'() {
    // Longer than the limit on silence: a training that ends before it is not stopped.
    const steps = 60;
    const scene = await Scene.begin({ steps });
    await scene.gpu(scene.one);
    const { name, pid } = await scene.trained(scene.one, 2);
    scene.one.temporal.cut();
    const cutAt = performance.now();
    await scene.gpu(scene.two);
    await until('its learner ends', HEARTBEAT_SECONDS + 10, () => !scene.one.isTraining(pid));
    console.log(`the learner ended ${((performance.now() - cutAt) / 1000).toFixed(1)} s after the cut`);
    const stopped = scene.one.trainings().find((one) => one.name === name);
    expect(stopped?.steps).toBeLessThan(steps);
    // The other training may come first.
    await until('another goes on', 300, () => scene.two.trainings().some((one) => one.name === name));
    scene.one.temporal.mend();
    await expectWhole(scene, { same: false });
    for (const { superseded } of await scene.results()) expect(superseded).toBeUndefined();
  },

  async 'a host that is cut off from the bucket waits'() {
    const scene = await Scene.begin();
    await scene.gpu(scene.one);
    await scene.trained(scene.one, 2);
    scene.one.s3.cut();
    await sleep(15_000);
    scene.one.s3.mend();
    await expectWhole(scene);
  },

  async 'the S3 server is killed for two minutes'() {
    const scene = await Scene.begin();
    await scene.gpu(scene.one);
    await scene.trained(scene.one, 2);
    await s3.kill();
    await sleep(120_000);
    await s3.start();
    await expectWhole(scene);
  },

  async 'the bucket is slow'() {
    const scene = await Scene.begin();
    for (const host of [scene.control, scene.one]) host.s3.delay(500);
    await scene.gpu(scene.one);
    await expectWhole(scene);
  },

  async 'a notice of preemption: what was trained is handed over'() {
    const scene = await Scene.begin();
    await scene.gpu(scene.one);
    const { name, steps } = await scene.trained(scene.one, 3);
    const begun = performance.now();
    await scene.one.stop();
    expect((performance.now() - begun) / 1000).toBeLessThan(30);
    await scene.gpu(scene.two);
    await until('the other goes on', 60, () =>
      scene.two.trainings().some((one) => one.name === name && one.steps >= steps),
    );
    await expectWhole(scene);
  },
};

test.each(Object.keys(scenarios).filter((name) => name === 'undisturbed' || only.test(name)))('%s', async (name) => {
  const begun = performance.now();
  await scenarios[name]!();
  console.log(`ok   ${name}: ${Math.round((performance.now() - begun) / 1000)} s`);
});

/**
 * Two homes with two base models on one Temporal server, with real workers through the real command line: each plays its own rollouts with its
 * own model. And workers that are started by hand: one whose policy server has another base model plays none.
 */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../src/artifacts/folder-store';
import { type Home, homeAt } from '../../src/cli/project';
import type { Snapshot } from '../../src/cli/watch/snapshot';
import type { FailureType } from '../../src/domain/failures';
import { type Report, reportSchema } from '../../src/report/model';
import { isSuccess } from '../../src/domain/rollout';
import { readScored } from '../../src/rollout/read';
import { CampaignRun, command, repository, writeCampaign } from '../support/campaign-run';
import { type EmbeddedServer, python, startEmbeddedServer } from '../support/embedded-server';
import { StoredKeys } from '../support/faults-home';
import { devServer, quiet } from '../workflows/environment';

jest.setTimeout(5 * 60_000);
quiet();
const folder = mkdtempSync(join(tmpdir(), 'two-homes-'));
const shipped = join(repository, 'models', 'base');
/** The shipped model's shape, with weights that mean nothing. */
const random = join(folder, 'models', 'random');
const TASKS = 20;
const file = `rollouts: { tasks: ${TASKS}, perTask: 1 }\nvalidation: { targetTasks: 4 }\n`;

let env: TestWorkflowEnvironment;
const cleanups: (() => Promise<unknown> | void)[] = [];
beforeAll(async () => {
  env = await devServer();
  cpSync(shipped, random, { recursive: true });
  const script = `
import sys, torch
from transformers import AutoConfig, AutoModelForCausalLM
torch.manual_seed(1)
AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(sys.argv[1])).save_pretrained(sys.argv[1])
`;
  execFileSync(python, ['-c', script, random], { cwd: repository, stdio: ['ignore', 'ignore', 'pipe'] });
});
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});
afterAll(async () => {
  await env?.teardown();
  rmSync(folder, { recursive: true, force: true });
});

interface Campaign {
  home: Home;
  file: string;
}
function campaignOf(name: string, o: { model: string; home?: Home; lines?: string }): Campaign {
  const path = join(folder, `${name}.yaml`);
  writeCampaign({ file: path, name, model: o.model, lines: file + (o.lines ?? '') });
  return { home: o.home ?? homeAt(join(folder, `home-of-${name}`)), file: path };
}
const reportOf = ({ root }: Home, name: string): Report =>
  reportSchema.parse(JSON.parse(readFileSync(join(root, name, 'report.json'), 'utf8')));

/** All scored rollouts in a home's store by key, and whether each is a success. */
async function rolloutsIn(home: Home): Promise<Map<string, boolean>> {
  const store = openFolderStore(join(home.root, 'artifacts'));
  const batches = new StoredKeys(home).matching(/^rollouts\//);
  const scored = await Promise.all(batches.map(({ ref }) => readScored({ store, ref })));
  return new Map(scored.flat().map((rollout) => [rollout.key, isSuccess(rollout)]));
}

test('two `campaign run` side by side: each has its own figures, and neither store holds a rollout of the other', async () => {
  const [good, bad] = [campaignOf('good', { model: shipped }), campaignOf('bad', { model: random })];
  // The random one can't work on the target, and says so.
  const options = ['--until', 'rollouts', '--force', '--temporal-address', env.address];
  const runs = [good, bad].map(({ home, file }) => new CampaignRun(home, file, options));
  expect(await Promise.all(runs.map(({ exit }) => exit))).toEqual([0, 0]);
  const [goodReport, badReport] = [reportOf(good.home, 'good'), reportOf(bad.home, 'bad')];
  expect(goodReport.campaign.baseModel).toMatch(/^base@[0-9a-f]{12}$/);
  expect(badReport.campaign.baseModel).toMatch(/^random@[0-9a-f]{12}$/);
  expect(goodReport.rollouts).toMatchObject({ scored: { value: TASKS }, broken: { value: 0 } });
  expect(badReport.rollouts).toMatchObject({ scored: { value: TASKS }, broken: { value: 0 } });
  const [ofGood, ofBad] = [await rolloutsIn(good.home), await rolloutsIn(bad.home)];
  expect([ofGood.size, ofBad.size]).toEqual([TASKS, TASKS]);
  expect([...ofGood.keys()].filter((key) => ofBad.has(key))).toEqual([]);
  const [right, wrong] = [ofGood, ofBad].map((rollouts) => [...rollouts.values()].filter(Boolean).length);
  expect(right).toBeGreaterThan(TASKS / 5);
  expect(wrong).toBe(0);

  // The name is one home's on this server.
  const taken = new CampaignRun(bad.home, good.file, options);
  expect(await taken.exit).toBe(1);
  expect(taken.output).toMatch(/campaign good was run on this Temporal server from another home \(task queue control-/);
});

interface Worker {
  /** What it says once it is ready. */
  ready: Record<string, unknown>;
  stop: () => Promise<unknown>;
}

/** A worker as somebody starts it on another machine. */
async function worker(kind: string, home: Home, settings: Record<string, string>): Promise<Worker> {
  const child = spawn(process.execPath, [join(repository, 'dist', 'workers', `${kind}.js`)], {
    cwd: repository,
    env: {
      ...process.env,
      TEMPORAL_ADDRESS: env.address,
      CAMPAIGN_HOME: home.root,
      CAMPAIGN_PYTHON: python,
      ...settings,
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = new Promise((done) => child.once('exit', done));
  const stop = () => {
    child.stdin.end();
    return ended;
  };
  cleanups.push(stop);
  for await (const line of createInterface({ input: child.stdout }))
    if (line.startsWith('{"type":"ready"')) return { ready: JSON.parse(line) as Worker['ready'], stop };
  throw new Error(`the ${kind} worker ended before it was ready`);
}

test('a worker whose policy server has another base model plays nothing, and one that has the right one takes the step', async () => {
  const pool = 'by-hand';
  const { home, file } = campaignOf('started', { model: shipped, lines: `workers: { pool: ${pool} }\n` });
  const servers = await Promise.all([random, shipped].map((model) => startEmbeddedServer({ model })));
  servers.forEach((server) => cleanups.push(() => server.stop()));
  const [wrong, right] = servers as [EmbeddedServer, EmbeddedServer];
  const at = ['--temporal-address', env.address];
  expect(await command(home, 'start', file, '--until', 'rollouts', ...at)).toMatch(
    /campaign started started; .*\nnone of the control workers of .*home-of-started \(control-[0-9a-f]{12}\) runs now/,
  );
  const until = async (holds: (seen: Snapshot) => boolean): Promise<Snapshot> => {
    for (;;) {
      const seen = JSON.parse(await command(home, 'status', 'started', '--json', ...at)) as Snapshot;
      if (holds(seen)) return seen;
      if (seen.status !== 'RUNNING') throw new Error(`the campaign ended as ${seen.status} before`);
      await sleep(500);
    }
  };
  /** Of the one step that there is, what it failed for on this worker, which then ends. */
  const failsOn = async ({ stop }: Worker, type: FailureType): Promise<string | undefined> => {
    const { activities } = await until(({ activities: [step] }) => step?.lastFailureType === type);
    await stop();
    return activities[0]?.lastFailure;
  };
  await worker('control', home, {});
  const queue = `rollouts-${pool}`;
  const waiting = await until(({ activities }) => activities.some(({ type }) => type === 'checkBase'));
  expect(waiting.activities).toMatchObject([{ state: 'scheduled', queue }]);

  const of = (server: EmbeddedServer) => ({ POLICY_SERVER_URL: server.url, CAMPAIGN_POOL: pool });
  const other = homeAt(join(folder, 'home-of-nobody'));
  const stranger = await worker('rollouts', other, of(right));
  expect(stranger.ready).toMatchObject({ taskQueue: queue });
  expect(await failsOn(stranger, 'WrongStore')).toContain(
    `in ${other.root}, is that of control-${String(stranger.ready['store'])}`,
  );
  expect(await failsOn(await worker('rollouts', home, of(wrong)), 'WrongBaseModel')).toContain(
    `serves ${wrong.base}, and the campaign wants ${right.base}`,
  );
  expect((await rolloutsIn(home)).size).toBe(0);
  await worker('rollouts', home, of(right));
  expect((await until(({ status }) => status !== 'RUNNING')).status).toBe('COMPLETED');
  expect((await rolloutsIn(home)).size).toBe(TASKS);
  expect((await rolloutsIn(other)).size).toBe(0);
  expect(reportOf(home, 'started').campaign.baseModel).toBe(right.base);
});

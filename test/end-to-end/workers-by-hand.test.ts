/**
 * Workers that are started by hand, through the real command line: one whose policy server has another base model, or whose store is another
 * home's, plays nothing. Two whole campaigns of two homes on one Temporal server are a scenario of test/faults.
 */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Home, homeAt } from '../../src/cli/project';
import type { Snapshot } from '../../src/cli/watch/snapshot';
import type { FailureType } from '../../src/domain/failures';
import { command, reportOf, repository, writeCampaign } from '../support/campaign-run';
import { type EmbeddedServer, makeRandomModel, startEmbeddedServer } from '../support/embedded-server';
import { rolloutsIn } from '../support/faults-checks';
import { atEnd } from '../support/opened';
import { type WorkerByHand, workerByHand } from '../support/worker-by-hand';
import { temporaryFolder } from '../support/temporary-folder';
import { devServer, quiet } from '../workflows/environment';

jest.setTimeout(5 * 60_000);
quiet();
const folder = temporaryFolder();
const shipped = join(repository, 'models', 'base');
const random = join(folder, 'models', 'random');
const TASKS = 20;

let env: TestWorkflowEnvironment;
beforeAll(async () => {
  env = await devServer();
  makeRandomModel(random);
});
afterAll(() => env?.teardown());

const worker = (kind: 'control' | 'rollouts', home: Home, settings: Record<string, string>): Promise<WorkerByHand> =>
  workerByHand(kind, { TEMPORAL_ADDRESS: env.address, CAMPAIGN_HOME: home.root, CAMPAIGN_MODEL: shipped, ...settings });

test('a worker whose policy server has another base model plays nothing, and one that has the right one takes the step', async () => {
  const pool = 'by-hand';
  const [home, file] = [homeAt(join(folder, 'home-of-started')), join(folder, 'started.yaml')];
  const sizes = `rollouts: { tasks: ${TASKS}, perTask: 1 }\nvalidation: { targetTasks: 4 }\n`;
  writeCampaign({ file, name: 'started', model: shipped, lines: `${sizes}workers: { pool: ${pool} }\n` });
  const servers = await Promise.all([random, shipped].map((model) => startEmbeddedServer({ model })));
  servers.forEach((server) => atEnd(server.stop));
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
  const failsOn = async ({ stop }: WorkerByHand, type: FailureType): Promise<string | undefined> => {
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

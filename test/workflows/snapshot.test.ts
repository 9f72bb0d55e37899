/** Looking at a campaign whose workers are away. */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { follow } from '../../src/cli/watch/follow';
import type { ProgressOutput } from '../../src/cli/watch/progress-output';
import { takeSnapshot, type Snapshot } from '../../src/cli/watch/snapshot';
import type { Temporal } from '../../src/cli/temporal';
import { quiet, start, timeSkipping } from './environment';
import { config } from './fake-activities';

jest.setTimeout(60_000);
quiet();
let env: TestWorkflowEnvironment;
let temporal: Temporal;
beforeAll(async () => {
  env = await timeSkipping();
  temporal = { client: env.client, close: async () => undefined };
});
afterAll(() => env?.teardown());

test('a campaign that no worker answers for is shown by its status alone', async () => {
  await start(env, { campaign: config({ name: 'alone' }) });
  expect(await takeSnapshot(temporal, 'alone')).toMatchObject({ status: 'RUNNING', children: [], activities: [] });
});

test('it is followed on', async () => {
  const handle = await start(env, { campaign: config({ name: 'followed' }) });
  const seen: Snapshot[] = [];
  const output = { show: (snapshot: Snapshot) => seen.push(snapshot), note: () => undefined };
  const following = follow({
    temporal,
    name: 'followed',
    output: output as unknown as ProgressOutput,
    signal: new AbortController().signal,
    pollMs: 50,
  });
  while (seen.length < 2) await new Promise((resolve) => setTimeout(resolve, 50));
  await handle.terminate();
  expect(await following).toMatchObject({ status: 'TERMINATED' });
});

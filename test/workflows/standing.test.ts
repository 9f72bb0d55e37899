/** `status`, `watch` and `report` with the server of a home: whatever way a campaign ended, they say where it stands, without an error. */
import { ApplicationFailure } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { homeAt } from '../../src/cli/project';
import { acquireLock } from '../../src/cli/run/processes';
import { type Snapshot, takeSnapshot, writeStatus } from '../../src/cli/watch/snapshot';
import { type AnnouncedServer, announcedServer } from '../support/announced-server';
import { campaignCommand } from '../support/campaign-command';
import { devServer, quiet, start, withWorkers } from './environment';
import { config, fakeActivities } from './fake-activities';

jest.setTimeout(60_000);
quiet();
let env: TestWorkflowEnvironment;
let home: string;
let server: AnnouncedServer;
const address = () => String((env.connection.options as { address?: string }).address);
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'standing-'));
  env = await devServer();
  server = await announcedServer(home);
  server.isAt(address());
});
afterAll(async () => {
  await server?.kill();
  await env?.teardown();
  rmSync(home, { recursive: true, force: true });
});

const look = (name: string): Promise<Snapshot> =>
  takeSnapshot({ client: env.client, close: async () => undefined }, name);
const jsonLines = (text: string) => text.split('\n').map((line) => JSON.parse(line) as Record<string, string>);

/** Runs a campaign to its end, and looks at it while its workers are there. */
async function ended(name: string, replaced: Parameters<typeof fakeActivities>[0] = {}): Promise<Snapshot> {
  const { activities } = fakeActivities(replaced);
  return withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign: config({ name, arms: [] }), until: 'rollouts' });
    await handle.result().catch(() => undefined);
    return look(name);
  });
}

test('one that failed: watch shows the last frame and why, with exit code 0', async () => {
  const prepare = () => Promise.reject(ApplicationFailure.nonRetryable('the target has no train tasks', 'BadInput'));
  await ended('failed', { prepare });
  const watched = await campaignCommand(home, 'watch', 'failed');
  expect(watched.code).toBe(0);
  expect(jsonLines(watched.text)[0]).toMatchObject({ status: 'failed', detail: 'the target has no train tasks' });
  const { text } = await campaignCommand(home, 'status', 'failed');
  expect(text).toMatch(/^failed · failed \d+ s/);
  expect(text).toMatch(/why: the target has no train tasks\n[^\n]*\n`campaign run FILE` goes on from what is done$/);
  expect(await campaignCommand(home, 'report', 'failed')).toMatchObject({
    code: 0,
    text: expect.stringMatching(/^no report of failed[\s\S]*why: the target has no train tasks/) as string,
  });
});

test('one that completed, its workers being gone: the tree of its own run is in status.json', async () => {
  const snapshot = await ended('done');
  expect(snapshot.progress?.stages[0]).toMatchObject({ status: 'done' });
  const alone = (await campaignCommand(home, 'status', 'done')).text;
  expect(alone).toMatch(/^done · completed [\s\S]*✓ rollouts\n[\s\S]*no worker answers/);
  await writeStatus({ home, snapshot });
  const kept = (await campaignCommand(home, 'status', 'done')).text;
  expect(kept).toMatch(/^done · seed \d+ · completed [\s\S]*✓ rollouts +\S+[\s\S]*10 rollouts scored, 1 broken/);
  expect(kept).not.toContain('no worker answers');
  await writeStatus({ home, snapshot: { ...snapshot, runId: 'an earlier run' } });
  expect((await campaignCommand(home, 'status', 'done')).text).toContain('no worker answers');
});

describe('watch of a campaign whose server ends', () => {
  const pause = () => new Promise((resolve) => setTimeout(resolve, 2500));
  afterEach(() => server.isAt(address()));

  test('waits while a supervisor may start it again, then shows the last state and ends', async () => {
    const handle = await start(env, { campaign: config({ name: 'left' }) });
    await writeStatus({ home, snapshot: await look('left') });
    const release = acquireLock(homeAt(home));
    let ended = false;
    const watched = campaignCommand(home, 'watch', 'left').finally(() => (ended = true));
    await pause();
    server.isAt(undefined);
    await pause();
    expect(ended).toBe(false);
    release();
    const { text, code } = await watched;
    expect(code).toBe(0);
    expect(jsonLines(text).map(({ status }) => status)).toContain('was running');
    expect(jsonLines(text).at(-1)?.['detail']).toMatch(/^as of .*no Temporal server of this home is running/);
    await handle.terminate();
  });

  test('goes on with the next one, at another address', async () => {
    const handle = await start(env, { campaign: config({ name: 'moving' }) });
    const watched = campaignCommand(home, 'watch', 'moving');
    await pause();
    const at = address().replace('127.0.0.1', 'localhost');
    expect(at).not.toBe(address());
    server.isAt(at);
    await pause();
    await handle.terminate();
    expect(jsonLines((await watched).text).map(({ status }) => status)).toContain('terminated');
  });
});

test('one that only the home knows is told by its files; a list has both', async () => {
  const handle = await start(env, { campaign: config({ name: 'begun' }) });
  const known = { ...(await look('begun')), name: 'moved', status: 'FAILED', failure: 'no room', closedAt: Date.now() };
  await writeStatus({ home, snapshot: known });
  const { text, code } = await campaignCommand(home, 'status', 'moved');
  expect(code).toBe(0);
  expect(text).toMatch(/^moved · failed [\s\S]*why: no room\nas of .*; the Temporal server does not know it: /);
  expect((await campaignCommand(home, 'watch', 'moved')).code).toBe(0);
  const listed = async () => (await campaignCommand(home, 'status')).text;
  while (!(await listed()).includes('begun')) await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await listed()).toMatch(/^begun +running +started [^\n]*UTC$/m);
  expect(await listed()).toMatch(/^moved +failed +started .* as of /m);
  // A cluster that is named has campaigns of other homes.
  expect((await campaignCommand(home, '--temporal-address', address(), 'status')).text).not.toContain('moved');
  // An unknown name is told with both kinds.
  await expect(campaignCommand(home, 'watch', 'nobody')).rejects.toThrow(/no campaign nobody in .*known: .*begun/);
  await handle.terminate();
});

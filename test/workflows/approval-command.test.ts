/** `campaign approvals`, `approve` and `reject` on a running campaign over a real store. */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { openFolderStore, openStore } from '../../src/artifacts/open-store';
import { notingUsage } from '../../src/artifacts/usage';
import type { ArtifactRef } from '../../src/domain/artifacts';
import type { CampaignProgress } from '../../src/workflows/messages';
import { type AnnouncedServer, announcedServer } from '../support/announced-server';
import { campaignCommand } from '../support/campaign-command';
import { scoredRollout } from '../support/scored-rollout';
import { bucket, s3ServerForTests } from '../support/s3-server';
import { devServer, quiet, start, withWorkers } from './environment';
import { calibration, config, fakeActivities, summary, type Activities } from './fake-activities';
import { openBrowser } from '../support/browser';
import { repository } from '../support/campaign-run';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
let home: string;
let server: AnnouncedServer;
const CHILD = 'tell_what_is_asked';
/** In the home's store, or the bucket that stands in its place. */
async function put(name: string, body: string, { producer = 'test', campaign = 'other' } = {}): Promise<ArtifactRef> {
  const store = notingUsage(await openStore(home), () => campaign);
  const ref = await store.put({ key: name, producer, inputs: [], mediaType: 'application/jsonl', body });
  await store.noted();
  await store.close();
  return ref;
}
s3ServerForTests(() => undefined);

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'approval-'));
  env = await devServer();
  server = await announcedServer(home);
  server.isAt(String((env.connection.options as { address?: string }).address));
});
afterAll(async () => {
  await server?.kill();
  await env?.teardown();
  rmSync(home, { recursive: true, force: true });
});

const rollout = (name: string, reward: number, said: string) => ({
  ...scoredRollout({ name, task: `task-${name}`, reward }),
  messages: [
    { role: 'user', content: `please, ${name}` },
    { role: 'assistant', content: said },
    { role: 'user', content: 'and what else?' },
  ],
});
const jsonl = (rollouts: object[]) => rollouts.map((one) => `${JSON.stringify(one)}\n`).join('');

/** Activities whose artifacts are in the store; its base rollouts are the campaign's. */
async function stored(campaign?: string): Promise<Partial<Activities>> {
  const rollouts = [rollout('a', 0, 'I <b>refuse</b>\u001b[31m'), rollout('b', 1, 'gladly'), rollout('c', 0.5, 'half')];
  const base = await put('rollouts/base', jsonl(rollouts), {
    producer: 'rollouts: base rollouts',
    ...(campaign && { campaign }),
  });
  const key = rollouts[0]?.key ?? '';
  const candidates = [
    {
      name: 'refuse_what_is_forbidden',
      definition: 'Refuses what the policy forbids.',
      examples: [key],
      citations: [{ rollout: key, message: 1, says: 'it refuses without a word why' }],
    },
    { name: CHILD, definition: 'Tells what was asked.', examples: [key] },
  ];
  const discovery = await put('candidates', JSON.stringify({ candidates, faults: [] }));
  const labels = (attempt: number) => ({
    attempt,
    totals: { total_failed: 0, total_passed: 0 },
    labels: {},
  });
  const figure = { mean: 0.5, std: 0.1 };
  const selection = {
    passes: 10,
    capabilities: candidates.map(({ name }) => ({
      ...{ name, coverage: figure, delta: figure, votes: 9, passes: 10, selected: true, evidence: [key] },
    })),
  };
  const selected = await put('selection', JSON.stringify(selection));
  return {
    discover: async () => ({ ref: discovery, selects: 'by labels' }),
    label: async ({ pass }) => put(`labels-${pass}`, JSON.stringify(labels(pass))),
    select: async () => ({ ref: selected, selected: candidates.map((candidate) => ({ candidate, votes: 9 })) }),
    synthesize: async ({ candidate, round, previous }) =>
      put(
        `${candidate.name}-${round}`,
        `const version = ${round};\nconst same = 1;\n// ${previous?.rejection ?? ''}\n// Rationale: it asks the same.\n`,
      ),
    calibrate: async () => ({
      ...calibration(true),
      ...{ meanReward: 0.4, successRate: 0.3, allZero: 0.1, allSuccess: 0, informative: 0.7 },
    }),
    rollOut: async (input) => ({ ...summary(input), ref: base }),
  };
}

const run = (...argv: string[]) => campaignCommand(home, ...argv);
const ran = (...argv: string[]) => run(...argv).then(({ text }) => text);
async function until<T>(look: () => Promise<T | undefined | false>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

test('from what waits to what was decided', async () => {
  const { activities, seen } = fakeActivities(await stored());
  const name = 'asked';
  const approval = { capabilities: true, environments: true };
  await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign: config({ name, arms: [], approval }) });
    const progress = () => handle.query<CampaignProgress>('progress');
    await until(async () => (await progress()).waiting);

    const shown = await ran('approvals', name);
    expect(shown).toContain(
      'refuse_what_is_forbidden\nRefuses what the policy forbids.\n9 of 10 votes, Cov 0.50 ± 0.10',
    );
    expect(shown).toMatch(/it refuses without a word why – \S+ task task-a, attempt 0, failed, message\s+1/);
    expect(shown).toMatch(/> agent +I <b>refuse<\/b>\S*\n +user +and what else\?/);
    expect(shown).not.toContain('\u001b');
    expect((await ran('status', name)).split('\n')[2]).toMatch(
      /^▸ selection +waits for approval of 2 capabilities: campaign approve asked/,
    );

    // What decides nothing.
    await expect(run('approve', name)).rejects.toThrow(/no terminal to confirm on; pass --yes to approve /);
    await expect(run('approve', name, CHILD, '--yes')).rejects.toThrow(
      /approved together .*campaign reject asked NAME/,
    );
    await expect(run('approve', name, 'no_such_one', '--yes')).rejects.toThrow(
      /^no_such_one does not wait for approval/,
    );
    await expect(run('reject', name, 'no_such_one', '--reason', 'r', '--yes')).rejects.toThrow(/does not wait/);
    await expect(run('reject', name, CHILD, '--reason', ' ', '--yes')).rejects.toThrow('--reason is blank');
    const copy = join(home, name, 'approval', String(readdirSync(join(home, name, 'approval'))[0]));
    const list = readFileSync(copy, 'utf8');
    const edit = (text: string) => {
      writeFileSync(copy, text);
      return run('approve', name, '--edit', copy, '--yes');
    };
    await expect(edit('[{name: [')).rejects.toThrow(/is not YAML/);
    await expect(edit('[{name: x}]')).rejects.toThrow(/\[0\]\.definition is missing; .*it is a list of capabilities/);
    await expect(edit(list.replace(CHILD, 'another_one'))).rejects.toThrow(
      /unknown capability another_one; those that/,
    );
    expect((await progress()).waiting).toBeDefined();

    // A copy that was edited is not written over by another look.
    const edited = `- name: ${CHILD}\n  definition: Says all of it.\n`;
    writeFileSync(copy, edited);
    await ran('approvals', name);
    expect(readFileSync(copy, 'utf8')).toBe(edited);
    expect(await ran('approve', name, '--edit', copy, '--yes')).toBe(`approved: refuse_what_is_forbidden, ${CHILD}`);

    // The environment: sent back, then edited.
    const round = async (wanted: number) =>
      until(async () => (await ran('approvals', name)).includes(`${CHILD}, round ${wanted}\n`));
    await round(1);
    expect(await ran('reject', name, CHILD, '--reason', 'too easy to guess', '--yes')).toBe(
      `rejected: the environment of ${CHILD}, round 1`,
    );
    await round(2);
    const second = await ran('approvals', name);
    expect(second).toMatch(
      /Says all of it\.\nModule: [^]*Rationale: it asks the same\.\nBase model: mean reward 0\.40/,
    );
    expect(second).toContain('Round 1: rejected: too easy to guess');
    expect(second).toMatch(/-const version = 1;\n\+const version = 2;\n const same = 1;/);
    expect(second).toMatch(
      /task-b: passed, reward 1\.00[^]*task-a: failed, reward 0\.00[^]*task-c: failed, reward 0\.50/,
    );
    const module = join(home, 'mine.js');
    writeFileSync(module, 'const version = "mine";\n');
    expect(await ran('approve', name, CHILD, '--edit', module, '--yes')).toMatch(/^approved: the environment of/);
    await handle.result();
    await expect(run('approve', name, '--yes')).rejects.toThrow(/^campaign asked does not run \(completed\)/);
  });
  expect(seen.record?.capabilities).toMatchObject([{ name: CHILD, status: 'trained', rounds: [{}, {}, {}] }]);
  const trained = seen.record?.capabilities?.[0]?.rounds.at(-1)?.module;
  expect(String(await openFolderStore(join(home, 'artifacts')).read(trained!))).toBe('const version = "mine";\n');
});

test('all that are selected can be rejected; without a worker nothing can be decided', async () => {
  const { activities, seen } = fakeActivities(await stored());
  const name = 'none';
  const handle = await start(env, { campaign: config({ name, arms: [], approval: { capabilities: true } }) });
  await expect(run('approve', name, '--yes')).rejects.toThrow(/^no worker answers for campaign none/);
  await withWorkers(env, activities, async () => {
    await until(async () => (await handle.query<CampaignProgress>('progress')).waiting);
    expect(await ran('reject', name, 'all', '--reason', 'no skills', '--yes')).toMatch(/^rejected: refuse_what/);
    await handle.result();
  });
  expect(seen.record?.selection).toMatchObject({ selected: [], decision: { kind: 'reject', reason: 'no skills' } });
});

test.each([
  ['home', undefined],
  ['bucket', `s3://${bucket}/view`],
])('what waits in a %s is read and approved on the page of campaign view, in a browser', async (name, url) => {
  if (url) process.env['CAMPAIGN_STORE'] = url;
  const { activities, seen } = fakeActivities(await stored(name));
  await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign: config({ name, arms: [], approval: { capabilities: true } }) });
    await until(async () => (await handle.query<CampaignProgress>('progress')).waiting);
    const args = [join(repository, 'bin/campaign'), '--home', home, 'view', name, '--port', '0', '--json'];
    const { env: variables } = process;
    const view = spawn(process.execPath, args, { env: variables, stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(createInterface({ input: view.stdout }), 'line')) as [string];
    const { url: page, rollouts } = JSON.parse(line) as { url: string; rollouts: number };
    expect(rollouts).toBe(3);
    const browser = await openBrowser();
    try {
      const opened = await browser.open({ url: `${page}/#approval` });
      expect(await opened.locator('main').innerText()).toContain('I <b>refuse</b>');
      // From the step that the analyst cites to its conversation, and back.
      await opened.locator('main summary a').first().click();
      expect(await opened.locator('article .cited').innerText()).toContain('I <b>refuse</b>\\u{1b}[31m');
      await opened.goBack();
      await opened.locator('.decision button', { hasText: 'Approve' }).first().click();
      await opened.waitForSelector('text=approved: refuse_what_is_forbidden');
      await handle.result();
      expect(browser.problems).toEqual([]);
    } finally {
      await browser.close();
      view.kill('SIGINT');
      await once(view, 'close');
      delete process.env['CAMPAIGN_STORE'];
    }
  });
  expect(seen.record?.selection).toMatchObject({ selected: [{}, {}], decision: { kind: 'approve' } });
});

test('one that waits can be cancelled, with its children, and not twice', async () => {
  const { activities } = fakeActivities(await stored());
  const name = 'dropped';
  await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign: config({ name, arms: [], approval: { environments: true } }) });
    const children = async () => (await handle.query<CampaignProgress>('progress')).children;
    const child = (await until(async () => (await children()).find(({ detail }) => detail.startsWith('waits'))))!;
    expect(await ran('cancel', name)).toMatch(/^campaign dropped: ends as soon as a worker hears of it/);
    await expect(handle.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } });
    expect((await env.client.workflow.getHandle(child.workflowId).describe()).status.name).toBe('CANCELLED');
    expect((await ran('status', name)).split('\n')[0]).toMatch(/cancelled/);
    await expect(run('cancel', name)).rejects.toThrow(/^campaign dropped is not running: it has ended \(cancelled\)/);
  });
  await expect(run('cancel', 'unknown')).rejects.toThrow(/^no campaign unknown is running here/);
});

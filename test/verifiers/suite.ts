/**
 * verifiers both ways, with the real base model: an exported environment is loaded and played by verifiers and has the engine's rewards, and an
 * environment that comes with verifiers (TextArena's) is a target (`make test-verifiers`).
 */
import { execFile, execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { openFolderStore } from '../../src/store/open-store';
import type { AssistantMessage } from '../../src/domain/messages';
import { verifiers } from '../../src/environments/agent/verifiers';
import { environments } from '../../src/environments';
import { openEnvironment } from '../../src/environments/kinds';
import { putPackage } from '../../src/gateway/export';
import type { PolicyClient } from '../../src/policy/client';
import { openModule, sandboxEnvironment } from '../../src/sandbox/module';
import { type EmbeddedServer, policyClient, startEmbeddedServer } from '../support/embedded-server';
import { closedAfterwards } from '../support/opened';
import { playedAlone } from '../support/played';
import { scriptedPolicy, turnOf } from '../support/scripted-policy';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(10 * 60_000);
const repository = resolve(__dirname, '..', '..');
const venv = join(repository, '.venv-verifiers');
const source = readFileSync(join(repository, 'examples/modules/refuse_forbidden_actions.js'), 'utf8');
const work = temporaryFolder();
const store = openFolderStore(join(work, 'store'));

let server: EmbeddedServer;
let client: PolicyClient;
beforeAll(async () => {
  server = await startEmbeddedServer({ model: join(repository, 'models', 'base') });
  client = policyClient({ url: server.url, store });
  // The list of words that TextArena fetches from elsewhere where it can.
  for (const list of ['en', 'en-basic']) {
    mkdirSync(join(work, 'nltk/corpora/words'), { recursive: true });
    writeFileSync(join(work, 'nltk/corpora/words', list), 'bread\n');
  }
  process.env['NLTK_DATA'] = join(work, 'nltk');
});
afterAll(async () => {
  client.close();
  await server.stop();
});

interface Played {
  task: string;
  ok: boolean;
  rewards: Record<string, number>;
  said: { content: string | null; tool_calls?: { id: string; name: string; arguments: string }[] | null }[];
  errors: string[];
}

/** Episodes by verifiers' own loader and loop, a task each. */
const playedByVerifiers = (count: number, campaign: string): Promise<Played[]> =>
  new Promise((done, fail) => {
    const env = { ...process.env, PYTHONPATH: join(work, 'site'), CAMPAIGN: campaign, KEY: 'none' };
    const script = [
      join(__dirname, 'play_verifiers.py'),
      'refuse_forbidden_actions',
      `${server.url}/v1`,
      String(count),
    ];
    execFile(join(venv, 'bin/python'), script, { env, maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
      error ? fail(new Error(stderr)) : done(JSON.parse(stdout) as Played[]),
    );
  });

test('an exported environment is one of verifiers’: what its own rollouts earn is what the engine gives for the same answers', async () => {
  await putPackage({ name: 'refuse_forbidden_actions', module: source }, async (name, text) => {
    mkdirSync(dirname(join(work, name)), { recursive: true });
    writeFileSync(join(work, name), text);
  });
  const options = ['--no-deps', '--no-build-isolation', '--no-index', '--target', join(work, 'site')];
  const folder = join(work, 'verifiers/refuse_forbidden_actions');
  execFileSync(join(venv, 'bin/python'), ['-m', 'pip', 'install', '--quiet', ...options, folder], { stdio: 'pipe' });
  const played = await playedByVerifiers(24, `${process.execPath} ${join(repository, 'bin/campaign')}`);
  const engine = closedAfterwards(await sandboxEnvironment({ module: openModule({ source }), version: 'test' }));
  for (const { task, ok, rewards, said, errors } of played) {
    expect([ok, errors]).toEqual([true, []]);
    const episode = await engine.reset({ id: task, seed: 0 });
    let reason = 'max_steps' as const as Parameters<typeof episode.evaluate>[0];
    for (const { content, tool_calls: calls } of said) {
      const toolCalls = calls?.map(({ id, name, arguments: text }) => ({
        id,
        name,
        arguments: JSON.parse(text) as object,
      }));
      const message = { role: 'assistant', content: content ?? '', ...(toolCalls && { toolCalls }) };
      const { done, stopReason } = await episode.step(message as AssistantMessage);
      if (done) reason = stopReason ?? 'agent_stop';
    }
    expect(rewards).toEqual({ reward: (await episode.evaluate(reason)).reward });
    await episode.close();
  }
  const rewards = played.map(({ rewards: { reward } }) => reward!);
  expect(Math.max(...rewards)).toBe(1);
  expect(Math.min(...rewards)).toBeLessThan(1);
});

const hangman = {
  kind: 'verifiers',
  environment: 'textarena',
  venv,
  arguments: { taskset: { game: 'Hangman-v0' } },
  passEnv: ['NLTK_DATA', 'SSL_CERT_FILE'],
};

test('TextArena’s game is a target: what is said decides the reward, and each request is a turn that can be trained', async () => {
  const environment = closedAfterwards(await openEnvironment(hangman, { store, kinds: environments }));
  const says = ['[b]', '[r]', '[bread]'];
  const scripted = scriptedPolicy(({ messages }) => ({ role: 'assistant', content: says[turnOf(messages)]! }));
  const policy = { base: server.base, adapters: [] };
  const [won, sampled] = await Promise.all([
    playedAlone('train-0', { environment, client: scripted, policy }),
    playedAlone('train-1', { environment, client, policy, sampling: { temperature: 1, topP: 1, maxTokens: 16 } }),
  ]);
  expect(won).toMatchObject({ reward: 1, steps: 3 });
  expect(won.messages[0]).toMatchObject({
    role: 'system',
    content: expect.stringMatching(/competitive game player/),
  });
  expect(sampled.reward).toBeLessThan(1);
  expect(sampled.rows).toHaveLength(1);
  expect(sampled.rows[0]!.turns).toHaveLength(sampled.steps);
  expect(await environment.describe()).toMatchObject({ name: 'textarena' });
});

test('`campaign check` plays three of its tasks; what verifiers can’t load is said, and is no reward', async () => {
  const lines: string[] = [];
  expect(await verifiers.check!(hangman, (line) => lines.push(line))).toEqual([]);
  expect(lines.join('\n')).toMatch(/task train-0: .*You are a competitive|task train-0: .*reward 0/);
  const unknown = { ...hangman, arguments: { taskset: { game: 'Chess-v0' } } };
  expect(await verifiers.check!(unknown, () => {})).toMatchObject([
    { problem: expect.stringMatching(/exit code 1 .*game/s) },
  ]);
});

/** Harbor's task folders as a target, in plain processes: what the agent leaves is judged by the task's own tests, and what they can't judge is broken. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Environment } from '../../src/domain/environment';
import { harbor } from '../../src/environments/agent/harbor';
import { openEnvironment } from '../../src/environments/open';
import { closedAfterwards } from '../support/opened';
import { playedAlone } from '../support/played';
import { scriptedPolicy } from '../support/scripted-policy';
import { temporaryStore } from '../support/temporary-store';
import { eachTemporaryFolder } from '../support/temporary-folder';
import type { ArtifactStore } from '../../src/artifacts/store';

let store: ArtifactStore;
let root: string;
temporaryStore((opened) => (store = opened));
eachTemporaryFolder((made) => (root = made));

const write = (path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};

/** The task is to write a word where the Dockerfile works; its tests read it there, and a file of the image. */
function writeTask(
  name: string,
  word: string,
  { test = 'echo "$reward" > /logs/verifier/reward.txt', dockerfile = '' } = {},
) {
  write(`tasks/${name}/task.toml`, 'version = "1.0"\n[metadata]\ndifficulty = "easy"\n');
  write(`tasks/${name}/instruction.md`, `Write ${word} into answer.txt.`);
  write(`tasks/${name}/environment/Dockerfile`, `FROM ubuntu:24.04\nWORKDIR /app\nCOPY words/ words/\n${dockerfile}`);
  write(`tasks/${name}/environment/words/known.txt`, word);
  write(
    `tasks/${name}/tests/test.sh`,
    `#!/bin/bash\nreward=0; cmp -s answer.txt /app/words/known.txt && [ -f /tests/test.sh ] && reward=1\n${test}\n`,
  );
}

/** It writes what the model says into the folder that it is in. It would read the tests, were they there. */
const PROGRAM = `
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
const { prompt } = JSON.parse(readFileSync(0, 'utf8'));
const answer = await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
  method: 'POST',
  headers: { authorization: 'Bearer ' + process.env.OPENAI_API_KEY },
  body: JSON.stringify({ model: 'x', messages: [{ role: 'user', content: prompt }] }),
});
const { choices } = await answer.json();
if (existsSync('/tests/test.sh')) throw new Error('the agent sees the tests');
writeFileSync('answer.txt', choices[0].message.content);
`;

const spec = () => ({ kind: 'harbor', tasks: join(root, 'tasks'), command: ['node', 'agent.mjs'], folder: root });
const open = () => openEnvironment(spec(), { store });

const played = (environment: Environment, task: string, says: string) => {
  const client = scriptedPolicy(() => ({ role: 'assistant', content: says }));
  return playedAlone(task, { environment, client, policy: { base: 'scripted', adapters: [] } });
};

test('each folder is a task; the reward is that of its own tests, which the agent does not see; nothing is left on the machine', async () => {
  for (const word of ['apple', 'bread', 'chair']) writeTask(word, word);
  write('tasks/README.md', 'no task');
  write('agent.mjs', PROGRAM);
  const environment = await open();
  try {
    const [train, test] = [await environment.tasks('train'), await environment.tasks('test')];
    expect([...train, ...test].map(({ id }) => id).sort()).toEqual(['apple', 'bread', 'chair']);
    expect(test).toHaveLength(1);
    expect(train[0]?.text).toBe(`Write ${train[0]!.id} into answer.txt.`);
    const said = [
      ['apple', 'apple'],
      ['bread', 'apple'],
      ['chair', 'chair'],
    ] as const;
    const rollouts = await Promise.all(said.map(([task, word]) => played(environment, task, word)));
    expect(rollouts.map(({ reward }) => reward)).toEqual([1, 0, 1]);
    expect(rollouts[0]!.messages[0]).toMatchObject({ role: 'user', content: 'Write apple into answer.txt.' });
    expect(await environment.describe()).toMatchObject({ name: 'harbor' });
  } finally {
    await environment.close();
  }
  const lines: string[] = [];
  expect(await harbor.check!(spec(), (line) => lines.push(line))).toEqual([]);
  expect(lines.join('\n')).toMatch(/task apple: .*ended by itself, reward 0/);
  for (const path of ['/app', '/logs', '/tests']) expect(existsSync(path)).toBe(false);
}, 300_000);

test('reward.json counts; no reward, and a program that fails, break the rollout', async () => {
  writeTask('apple', 'apple', { test: 'printf \'{\\n"reward": 0.25,\\n"speed": 3\\n}\' > /logs/verifier/reward.json' });
  writeTask('bread', 'bread', { test: 'echo broken >&2; exit 1' });
  write('agent.mjs', PROGRAM);
  const environment = closedAfterwards(await open());
  expect(await played(environment, 'apple', 'pear')).toMatchObject({ reward: 0.25 });
  await expect(played(environment, 'bread', 'bread')).rejects.toThrow(
    /has told no reward: .*broken\n.*has left no reward/s,
  );
  write('agent.mjs', `${PROGRAM}\nprocess.exit(3);`);
  await expect(played(environment, 'apple', 'apple')).rejects.toThrow(/ended with exit code 3/);
}, 300_000);

test('what the agent leaves in the place of the tests and of their reward, prints as one, and lets run counts for nothing', async () => {
  const fair = '[ ! -e /tests/planted ] && sleep 1 && echo 0 > /logs/verifier/reward.txt';
  writeTask('apple', 'apple', { test: fair });
  writeTask('bread', 'bread', { test: 'cat /logs/agent/notes >&2; exit 1' });
  const planting = 'echo 1 > /logs/verifier/reward.json; echo 1 > /logs/verifier/reward.txt; touch /tests/planted';
  write(
    'agent.mjs',
    `${PROGRAM}
    import { execSync, spawn } from 'node:child_process';
    execSync(${JSON.stringify(`${planting}; echo kept > /logs/agent/notes`)});
    const loop = ${JSON.stringify(`while :; do ${planting}; sleep 0.1; done`)};
    spawn('setsid', ['env', '-i', 'PATH=/usr/bin:/bin', 'sh', '-c', loop], { detached: true, stdio: 'ignore' }).unref();
    console.log(1);`,
  );
  const environment = closedAfterwards(await open());
  expect(await played(environment, 'apple', 'pear')).toMatchObject({ reward: 0 });
  await expect(played(environment, 'bread', 'bread')).rejects.toThrow(/ended with exit code 1: kept/);
}, 300_000);

test('its version changes with whatever file the tests of a task read', async () => {
  for (const word of ['apple', 'bread']) writeTask(word, word);
  write('agent.mjs', PROGRAM);
  const version = async () => (await closedAfterwards(await open()).describe()).version;
  const before = await version();
  expect(await version()).toBe(before);
  write('tasks/bread/tests/expected.json', '{}');
  expect(await version()).not.toBe(before);
}, 300_000);

test('what a plain process can’t do is named before anything is played', async () => {
  writeTask('apple', 'apple');
  write('agent.mjs', PROGRAM);
  const refused = async () => (await open()).tasks('train');
  await expect(refused()).rejects.toThrow(/has 1 folders with a task.toml; name one that holds two or more/);
  writeTask('bread', 'bread', { dockerfile: 'RUN apt-get install -y gcc' });
  await expect(refused()).rejects.toThrow(/bread: its Dockerfile has RUN apt-get install -y gcc, .* in a container/);
  writeTask('bread', 'bread');
  write('tasks/bread/task.toml', '[environment]\ndocker_image = "owner/image"\n');
  await expect(refused()).rejects.toThrow(/bread: task.toml has docker_image =/);
  writeTask('bread', 'bread', { dockerfile: 'WORKDIR /usr' });
  await expect(played(closedAfterwards(await open()), 'bread', 'bread')).rejects.toThrow(
    /works in \/usr, and \/usr is a folder of this machine/,
  );
}, 300_000);

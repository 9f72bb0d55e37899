/** Programs that ask an OpenAI-compatible endpoint as agents, with the real embedded policy server: their rows are those of our own loop, token for token. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openFolderStore } from '../../src/artifacts/folder-store';
import type { FixedPolicy } from '../../src/domain/rollout';
import { openAgent } from '../../src/environments/agent/kind';
import { createShop } from '../../src/environments/shop/shop';
import { createPolicyClient, type PolicyClient } from '../../src/policy/client';
import { createMerger } from '../../src/policy/merge';
import { play, type PlayOptions } from '../../src/rollout/play';
import { type EmbeddedServer, python, startEmbeddedServer } from '../support/embedded-server';

const repository = resolve(__dirname, '..', '..');
const root = mkdtempSync(join(tmpdir(), 'agent-'));
const tasks = join(root, 'tasks.jsonl');
let server: EmbeddedServer;
let client: PolicyClient;
let policy: FixedPolicy;

beforeAll(async () => {
  const shop = await Promise.all((['train', 'test'] as const).map((split) => createShop().tasks(split)));
  writeFileSync(tasks, shop.flatMap((split) => split.slice(0, 20).map((task) => JSON.stringify(task))).join('\n'));
  server = await startEmbeddedServer({ model: process.env['BASE_MODEL'] ?? join(repository, 'models', 'base') });
  policy = { base: server.base, adapters: [] };
  const store = openFolderStore(join(root, 'store'));
  client = createPolicyClient({ url: server.url, concurrency: 8, store, merge: createMerger({ store, python }) });
}, 120_000);
afterAll(async () => {
  client.close();
  await server.stop();
  rmSync(root, { recursive: true, force: true });
}, 30_000);

const options = (changes: Pick<PlayOptions, 'environment'>): PlayOptions => ({
  client,
  policy,
  sampling: { temperature: 1, topP: 1, maxTokens: 32 },
  seed: 3,
  signal: new AbortController().signal,
  ...changes,
});

const agent = (command: string[]) =>
  openAgent({ command, tasks, folder: repository, version: '1', maxSteps: 20, silenceSeconds: 60 });

test('an agent on the openai package has the rows, the messages and the rewards of our own loop', async () => {
  const environments = [createShop(), agent(['node', 'examples/agents/shop.mjs'])];
  try {
    const ids = Array.from({ length: 6 }, (_, n) => `train-${n}`);
    const [own, programs] = await Promise.all(
      environments.map((environment) =>
        Promise.all(
          ids.map(async (task) => {
            const planned = { key: `k-${task}`, task, attempt: 0, hinted: false };
            const { messages, rows, reward, steps, usage } = await play(planned, options({ environment }));
            // What the user says last ends the program's conversation: it asks nothing more.
            const last = messages.findLastIndex(({ role }) => role === 'assistant');
            return { messages: messages.slice(0, last + 1), rows, reward, steps, usage };
          }),
        ),
      ),
    );
    expect(programs).toEqual(own);
    expect(own!.some(({ steps }) => steps > 2)).toBe(true);
    expect(own!.every(({ rows }) => rows.length === 1)).toBe(true);
  } finally {
    for (const environment of environments) await environment.close();
  }
}, 120_000);

/** The policy client against the real embedded server, on a random tiny model: the TypeScript-Python contract of the dialect. */
import { cpSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { openFolderStore } from '../../src/store/open-store';
import type { ArtifactStore } from '../../src/store/store';
import type { FixedPolicy } from '../../src/domain/rollout';
import type { PolicyClient } from '../../src/policy/client';
import { expectConformance } from '../support/policy-conformance';
import type { Rendered, TurnRequest } from '../../src/policy/wire';
import { openPolicyServer } from '../../src/policy/server';
import { atEnd } from '../support/opened';
import {
  makeHermesModel,
  makeTinyModel,
  policyClient,
  python,
  startEmbeddedServer,
  type EmbeddedServer,
} from '../support/embedded-server';
import { temporaryFolder } from '../support/temporary-folder';

const repository = resolve(__dirname, '..', '..');
const root = temporaryFolder();
const model = join(root, 'model');
let server: EmbeddedServer;
let client: PolicyClient;
let store: ArtifactStore;

beforeAll(async () => {
  makeTinyModel({ folder: model });
  server = await startEmbeddedServer({ model });
  base = { base: server.base, adapters: [] };
  store = openFolderStore(join(root, 'store'));
  client = policyClient({ url: server.url, store });
});
afterAll(async () => {
  client.close();
  await server.stop();
});

let base: FixedPolicy;
const request = (changes: Partial<TurnRequest> = {}): TurnRequest => ({
  policy: base,
  messages: [
    { role: 'system', content: 'you are a help desk .' },
    { role: 'user', content: 'cancel the red lamp i42 please' },
  ],
  tools: [
    { name: 'get_account', description: '', parameters: { type: 'object', properties: { user: { type: 'string' } } } },
  ],
  sampling: { temperature: 1, topP: 1, maxTokens: 12 },
  seed: 5,
  ...changes,
});
const greedy = { temperature: 0, topP: 1, maxTokens: 12 };

/** Another server than that of all tests, until the test ends. */
async function another(of: string) {
  const second = await startEmbeddedServer({ model: of });
  atEnd(second.stop);
  const asked = policyClient({ url: second.url, store });
  atEnd(asked.close);
  return { second, asked };
}

test('a restart with another base model is noticed, and so is the right one after it', async () => {
  const port = ['--port', new URL(server.url).port];
  const before = await client.sample(request({ sampling: greedy }));
  await server.stop();
  const away = { type: 'PolicyServerUnavailable', retryable: true };
  await expect(client.sample(request())).rejects.toMatchObject(away);
  expect(await client.reachable()).toBe(false);
  server = await startEmbeddedServer({ model: join(repository, 'models', 'base'), args: port });
  // Its first request may find that the connection has ended; after that, nothing is sampled for it.
  await client.sample(request()).catch(() => undefined);
  const refused = expect.stringContaining(`serves ${server.base}, and the campaign wants ${base.base}`) as string;
  await expect(client.sample(request())).rejects.toMatchObject({ type: 'WrongBaseModel', message: refused });
  await server.stop();
  server = await startEmbeddedServer({ model, args: port });
  await client.sample(request()).catch(() => undefined);
  expect((await client.sample(request({ sampling: greedy }))).tokenIds).toEqual(before.tokenIds);
});

test('it answers all requests of a campaign; turns that render differently are continued as they were sampled', async () => {
  const hermes = join(root, 'hermes');
  const adapters = ['one', 'two'].map((name) => join(root, name));
  makeHermesModel(hermes, adapters);
  const { second, asked } = await another(hermes);
  const direct = openPolicyServer({ url: second.url, concurrency: 32 });
  atEnd(direct.close);
  let generated = 0;
  const counting = { ...direct, generate: (body: object) => (generated++, direct.generate(body)) };
  const about = { store, python, base: second.base, contextTokens: 2048 };
  const writeAdapter = async (o: { seed: number; folder: string }) =>
    cpSync(adapters[o.seed - 1]!, o.folder, { recursive: true });
  await expectConformance({ ...about, client: asked, server: counting, writeAdapter });
  expect(generated).toBeGreaterThan(8);
  const text = '<tool_call>\n{"name": "get_account", "arguments": {"user": "mia"}}\n</tool_call>';
  const idsOf = async (...messages: object[]) =>
    ((await direct.render({ model: 'base', messages, add_generation_prompt: messages.length < 2 })) as Rendered)
      .token_ids;
  const user = { role: 'user', content: 'hello' };
  const whole = await idsOf(user, { role: 'assistant', content: text });
  const chat_request = {
    model: 'base',
    messages: [user],
    tools: [{ type: 'function', function: { name: 'get_account' } }],
  };
  // The ids after the prompt, without the end of the turn and the end of the line.
  const choices = [{ token_ids: whole.slice((await idsOf(user)).length, -2), finish_reason: 'stop' }];
  expect(await direct.derender({ chat_request, generate_response: { choices } })).toMatchObject({
    choices: [{ message: { content: null, tool_calls: [{ function: { name: 'get_account' } }] } }],
  });
});

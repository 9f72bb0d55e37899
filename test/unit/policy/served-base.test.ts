/** A policy client hands on nothing that another base model than the policy's has answered. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFolderStore } from '../../../src/artifacts/open-store';
import type { ArtifactStore } from '../../../src/artifacts/store';
import { createPolicyClient, type PolicyClient } from '../../../src/policy/client';
import { BASE, completion, drawn, refuse, startDialectServer, type DialectServer } from '../../support/dialect-server';

const OTHER = 'base@ba9876543210';
const ids = [3, 1, 4, 1, 5];
const logprobs = [-2, -7.5, -0.25, -11];

let root: string;
let store: ArtifactStore;
let server: DialectServer;
const clients: PolicyClient[] = [];
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), 'served-base-'));
  store = openFolderStore(root);
  server = await startDialectServer();
});
afterEach(async () => {
  clients.splice(0).forEach((open) => open.close());
  await server.close();
  rmSync(root, { recursive: true, force: true });
});

function connect(baseId?: string): PolicyClient {
  const merge = () => Promise.reject(new Error('nothing is merged here'));
  const client = createPolicyClient({ url: server.url, concurrency: 8, store, merge, baseId });
  clients.push(client);
  return client;
}
const signal = new AbortController().signal;
const sampling = { temperature: 1, topP: 1, maxTokens: 4 };
const messages = [{ role: 'user' as const, content: 'hello' }];
const ask = (client: PolicyClient, base = BASE) =>
  client.sample({ policy: { base, adapters: [] }, messages, tools: [], sampling, seed: 1 });
const asked = (call: string) => server.requests.filter((one) => one.call.endsWith(call)).length;
const wrong = (serves: string | RegExp) => ({
  type: 'WrongBaseModel',
  retryable: true,
  message: expect.stringMatching(serves) as string,
});

test('a server that says that it serves this base is asked once, however much it answers', async () => {
  const client = connect();
  for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 8 }, () => ask(client)));
  expect(asked('/chat/completions')).toBe(160);
  // Once for its proof, once for the name that it has for the base.
  expect(asked('/models')).toBe(2);
  expect(asked('/v1/completions')).toBe(0);
});

test('another base is refused by what it serves, what is wanted and the fix, before anything is asked of it', async () => {
  server.root = OTHER;
  const client = connect();
  const refusal = wrong(
    `policy server ${server.url} serves ${OTHER}, and the campaign wants ${BASE}: start the server with that model, or the worker with the POLICY_SERVER_URL`,
  );
  await expect(ask(client)).rejects.toMatchObject(refusal);
  const policy = { base: BASE, adapters: [] };
  await expect(client.likeliest({ policy, messages, signal })).rejects.toMatchObject(refusal);
  await expect(client.ensurePolicy(policy)).rejects.toMatchObject(refusal);
  expect(server.requests.map(({ call }) => call)).not.toContain('POST /v1/chat/completions');
  expect(asked('/v1/completions')).toBe(0);
  // A campaign of the base that it does serve is served.
  expect((await ask(client, OTHER)).message.content).toBe('hello');
});

test.each([
  ['an answer', () => completion({ content: 'of another model' })],
  ['the end of the context', refuse(400, { message: 'prompt', code: 'context_length_exceeded' })],
] as const)('%s that comes after another base has taken its place is not handed on', async (_what, answer) => {
  const client = connect();
  await ask(client);
  server.complete = async (body, response) => {
    // The server breaks down under somebody else's request and comes back as another one, behind the same address.
    server.complete = refuse(502, { message: 'bad gateway' });
    await expect(ask(client)).rejects.toMatchObject({ type: 'PolicyServerError' });
    server.root = OTHER;
    return answer(body, response);
  };
  await expect(ask(client)).rejects.toMatchObject(wrong(OTHER));
});

describe('a server that does not say which base it serves', () => {
  beforeEach(() => (server.root = '/models/somebody/else'));
  const fingerprint = () =>
    store.put({
      ...{ key: 'fingerprint/0123456789ab', producer: 'test', inputs: [], mediaType: 'application/json' },
      body: JSON.stringify({ ids, logprobs }),
    });

  test('proves it by log-probs, once: those of another precision will do, those of another model will not', async () => {
    await fingerprint();
    server.score = () => [-2.05, -7.4, -0.26, -13];
    const client = connect();
    for (let n = 0; n < 5; n++) await ask(client);
    expect(server.requests.filter(({ call }) => call === 'POST /v1/completions')).toMatchObject([
      { body: { model: 'base', prompt: ids } },
    ]);
    server.score = () => [-2.5, -7.9, -0.25, -9];
    await expect(ask(connect())).rejects.toMatchObject(
      wrong(/serves another model as base \(log-probs of 4 tokens are off by 0\.50 nats in the median\)/),
    );
  });

  test('is another model where it does not know the ids', async () => {
    await fingerprint();
    server.score = () => {
      throw new Error('Token id 5 is out of vocabulary');
    };
    await expect(ask(connect())).rejects.toMatchObject(wrong(/serves another model as base \(.*Token id 5 is out of/));
  });

  test('is not believed without them', async () => {
    await expect(ask(connect())).rejects.toMatchObject(wrong(/does not say which model that is.*set CAMPAIGN_BASE_ID/));
    expect(asked('/chat/completions')).toBe(0);
  });

  test('is what the operator says that it is', async () => {
    expect((await ask(connect(BASE))).message.content).toBe('hello');
    await expect(ask(connect(OTHER))).rejects.toMatchObject(wrong(/serves base@ba9876543210 \(CAMPAIGN_BASE_ID\)/));
    expect(asked('/v1/completions')).toBe(0);
  });

  test('samples from all of its distribution, which is seen once, and again after it was away', async () => {
    const client = connect(BASE);
    const probes = () => server.requests.filter(({ body }) => 'top_logprobs' in body).length;
    for (let n = 0; n < 3; n++) await ask(client);
    const once = probes();
    expect(once).toBeGreaterThan(0);
    server.complete = refuse(502, { message: 'bad gateway' });
    await expect(ask(client)).rejects.toMatchObject({ type: 'PolicyServerError' });
    server.complete = () => completion({ content: 'hello' });
    await ask(client);
    expect(probes()).toBe(once);
    const { port } = new URL(server.url);
    await server.close();
    await expect(ask(client)).rejects.toMatchObject({ type: 'PolicyServerUnavailable' });
    server = await startDialectServer({ port: Number(port) });
    server.root = '/models/somebody/else';
    server.probe = ({ max_tokens: tokens }) => drawn(Array.from({ length: Number(tokens) }, () => true));
    await expect(ask(client)).rejects.toMatchObject({
      type: 'PolicyServerWrong',
      message: expect.stringMatching(
        /of 1024 tokens 0 are beyond the 19 likeliest, .* 512 should be; .*--generation-config/,
      ),
    });
    expect(server.requests.filter(({ body }) => 'max_tokens' in body && !('top_logprobs' in body))).toEqual([]);
  });

  test('but not where it says something else', async () => {
    server.root = OTHER;
    await expect(ask(connect(BASE))).rejects.toMatchObject(wrong(OTHER));
  });
});

test('a server that was started again with another base is noticed', async () => {
  const client = connect();
  await ask(client);
  const { port } = new URL(server.url);
  await server.close();
  server = await startDialectServer({ port: Number(port) });
  server.root = OTHER;
  // The first one may find that its connection has ended.
  await expect(ask(client)).rejects.toMatchObject({ retryable: true });
  await expect(ask(client)).rejects.toMatchObject(wrong(OTHER));
  expect(asked('/chat/completions')).toBe(0);
  server.root = BASE;
  expect((await ask(client)).message.content).toBe('hello');
});

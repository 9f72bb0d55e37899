/** One table of cases asked with the official clients of OpenAI for Node and for Python, of a gateway in front of the real embedded policy server (`make test-agents`). */
import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { openFolderStore } from '../../src/store/open-store';
import { createShop } from '../../examples/shop/target/shop';
import { type EmbeddedServer, startEmbeddedServer } from '../support/embedded-server';
import { startServing } from '../support/gateway';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(5 * 60_000);
const repository = resolve(__dirname, '..', '..');
const python = join(repository, '.venv-openai', 'bin', 'python');
const root = temporaryFolder();

type Gateway = Awaited<ReturnType<typeof startServing>>;
let server: EmbeddedServer;
const gateways: Record<string, Gateway> = {};

beforeAll(async () => {
  server = await startEmbeddedServer({ model: join(repository, 'models', 'base') });
  const store = openFolderStore(root);
  const policies = new Map([['base', { base: server.base, adapters: [] }]]);
  const common = { store, served: { name: 'demo', version: 'demo@1', base: server.base, policies }, apiKey: 'right' };
  gateways['usual'] = await startServing({ ...common, url: server.url });
  gateways['hasty'] = await startServing({ ...common, url: server.url, limits: { seconds: 0.001 } });
  gateways['cut off'] = await startServing({ ...common, url: 'http://127.0.0.1:9' });
});
afterAll(async () => {
  await Promise.all(Object.values(gateways).map((one) => one.close()));
  await server.stop();
});

const system = { role: 'system', content: 'you are a help desk .' };
const user = { role: 'user', content: 'cancel the red lamp i42 please' };
const called = {
  role: 'assistant',
  content: null,
  tool_calls: [{ id: 'call_0', type: 'function', function: { name: 'get_account', arguments: '{}' } }],
};
const result = { role: 'tool', tool_call_id: 'call_0', content: 'not now' };
const asked = { model: 'base', messages: [system, user], temperature: 0, max_tokens: 24 };

interface Case {
  name: string;
  body: object;
  /** Of the gateways; the usual one without it. */
  of?: string;
  key?: string;
  /** That the client waits; a minute without it. */
  seconds?: number;
  expected: object;
}
const refused = (status: number, more: object = {}) => ({ error: { status, ...more } });

/** `tools` stands for those of the shop. */
const cases: Case[] = [
  { name: 'words', body: asked, expected: { finish: 'stop', calls: [], usage: true } },
  { name: 'a limit', body: { ...asked, max_tokens: 2 }, expected: { finish: 'length' } },
  { name: 'log-probs', body: { ...asked, logprobs: true, top_logprobs: 2 }, expected: { logprobs: true } },
  {
    name: 'a call',
    body: { ...asked, tools: 'tools' },
    expected: { finish: 'tool_calls', calls: [{ id: 'call_0', name: 'cancel_item' }] },
  },
  {
    name: 'a result',
    body: { ...asked, tools: 'tools', messages: [system, user, called, result] },
    expected: { usage: true },
  },
  {
    name: 'parts',
    body: { ...asked, messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] },
    expected: {},
  },
  { name: 'an unknown model', body: { ...asked, model: 'gpt' }, expected: refused(404, { code: 'model_not_found' }) },
  { name: 'a wrong key', body: asked, key: 'wrong', expected: refused(401, { code: 'invalid_api_key' }) },
  { name: 'two choices', body: { ...asked, n: 2 }, expected: refused(400, { param: 'n' }) },
  {
    name: 'a picture',
    body: { ...asked, messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] },
    expected: refused(400, { param: 'messages.0.content.0.type' }),
  },
  {
    name: 'what the policy server has not',
    body: { ...asked, stop: ['x'] },
    expected: refused(400, { type: 'invalid_request_error' }),
  },
  {
    name: 'too long a conversation',
    body: { ...asked, messages: [{ role: 'user', content: 'lamp '.repeat(9000) }] },
    expected: refused(400, { code: 'context_length_exceeded' }),
  },
  {
    name: 'too large a body',
    body: { ...asked, messages: [{ role: 'user', content: 'x'.repeat(200_000) }] },
    expected: refused(413, { code: 'body_too_large' }),
  },
  { name: 'no policy server', body: asked, of: 'cut off', expected: refused(503) },
  { name: 'the gateway’s limit', body: asked, of: 'hasty', expected: refused(504, { code: 'timeout' }) },
  { name: 'the client’s limit', body: asked, seconds: 0.001, expected: { error: 'timeout' } },
];

interface Sent extends Case {
  url: string;
  key: string;
  streamed: boolean;
}
type Outcome = Record<string, unknown>;

/** By a client in a process of its own, which asks one after the other. */
const heardBy = (command: string, file: string, sent: Sent[]): Promise<Outcome[]> =>
  new Promise((done, fail) => {
    const child = execFile(command, [join(__dirname, file)], { maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
      error ? fail(new Error(stderr)) : done(JSON.parse(stdout) as Outcome[]),
    );
    child.stdin!.end(JSON.stringify(sent));
  });

const shopTools = async () => (await createShop().describe()).tools;

/** A case as it is sent, with the shop's tools in OpenAI's form. */
async function sentOf({ of = 'usual', key = 'right', ...one }: Case, streamed: boolean): Promise<Sent> {
  const tools = (await shopTools()).map(({ name, description, parameters }) => ({
    type: 'function',
    function: { name, description, parameters },
  }));
  const body = 'tools' in one.body ? { ...one.body, tools } : one.body;
  return { ...one, body, key, streamed, url: `${gateways[of]!.url}/v1` };
}

test('Node’s client and Python’s hear the same, whole and streamed, and it is what the table says', async () => {
  const sent = await Promise.all(cases.flatMap((one) => [false, true].map((streamed) => sentOf(one, streamed))));
  const inNode = await heardBy('node', 'clients.mjs', sent);
  const inPython = await heardBy(python, 'clients.py', sent);
  const shown = (outcomes: Outcome[]) =>
    sent.map(({ name, streamed }, n) => ({ name: `${name}${streamed ? ', streamed' : ''}`, ...outcomes[n] }));
  expect(shown(inNode)).toMatchObject(sent.map(({ expected }) => expected));
  expect(shown(inPython)).toEqual(shown(inNode));
  for (const [n, one] of inNode.entries()) if (sent[n]!.streamed) expect(one).toEqual(inNode[n - 1]);
});

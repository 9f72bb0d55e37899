import { freePort } from '../../../src/cli/ports';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { runChecks } from '../../../src/checks/check';
import { languageModelChecks } from '../../../src/cli/checks/language-models';
import { registry } from '../../../src/registry';
import { recorded, refuse, say, startChatServer, type ChatServer } from '../../support/chat-server';

let server: ChatServer;
beforeEach(async () => (server = await startChatServer(recorded(say('OK')))));
afterEach(() => server.close());

const campaign = (target: object) =>
  campaignFileSchema(registry).parse({ name: 'x', target, baseModel: { path: '/base' } });
const tau2 = (models: object) => campaign({ kind: 'tau2', domains: ['mock'], ...models });
const checkPartners = (read: ReturnType<typeof campaign>) => runChecks(languageModelChecks(read, { asks: false }));
const model = (over: object = {}) => ({ url: server.url, model: 'm', ...over });

test('a target that plays its user itself needs no model; a benchmark does', async () => {
  expect(await checkPartners(campaign({ kind: 'builtin', name: 'shop' }))).toEqual([]);
  expect(await checkPartners(campaign({ kind: 'process', command: ['x'] }))).toEqual([]);
  expect(await checkPartners(tau2({}))).toMatchObject([{ ok: false, detail: 'target.user is missing' }]);
});

test('a missing variable, a wrong key, an endpoint that is gone', async () => {
  const detail = async (over: object = {}) => (await checkPartners(tau2({ user: model(over) })))[0]?.detail;
  expect(await detail({ apiKeyEnv: 'NOT_SET' })).toMatch(/apiKeyEnv is NOT_SET, and this variable is not set/);
  expect(await detail({ url: `http://127.0.0.1:${await freePort()}/v1` })).toContain('ECONNREFUSED');
  server.play = refuse(401, 'no key');
  expect(await detail()).toContain('target.user.apiKeyEnv');
});

/** Connections to a real server behind TLS, client certificates and an API key; and a home's own server beside the profile of a cluster. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { homeAt } from '../../../src/cli/project';
import { startTemporal } from '../../../src/cli/services/temporal-server';
import type { SupervisedRun } from '../../../src/cli/services/supervisor';
import { connect, registerSearchAttributes } from '../../../src/cli/temporal';
import { clusterAt } from '../../../src/temporal/connection';
import { bypassProxiesOnLoopback } from '../../../src/temporal/loopback';
import { atEnd, supervise } from '../../support/supervised';
import { makeCertificates, startTemporalProxy } from '../../support/temporal-proxy';
import { temporaryFolder } from '../../support/temporary-folder';
import { serverForTests } from '../../workflows/environment';

const env = serverForTests();
const folder = temporaryFolder();
const of = makeCertificates(folder, 'server', 'client');
let proxies: Record<'mutual' | 'keyed', Awaited<ReturnType<typeof startTemporalProxy>>>;
beforeAll(async () => {
  const { address } = env();
  const server = of('server');
  proxies = {
    mutual: await startTemporalProxy({ address, server, clients: of('ca').cert }),
    keyed: await startTemporalProxy({ address, server, apiKey: 'secret' }),
  };
});
afterAll(() => {
  for (const proxy of Object.values(proxies ?? {})) proxy.close();
});

const before = { ...process.env };
const reset = () => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
  Object.assign(process.env, before);
};
afterEach(reset);

/** The settings of a user. */
const set = (variables: Record<string, string>) => Object.assign(process.env, variables);
const trusted = () => ({ TEMPORAL_TLS_SERVER_CA_CERT_PATH: of('ca').cert });
const certificate = (name: string) => ({
  TEMPORAL_TLS_CLIENT_CERT_PATH: of(name).cert,
  TEMPORAL_TLS_CLIENT_KEY_PATH: of(name).key,
});

test('a key of 0.2 that would encrypt nothing is refused', () => {
  set({ CAMPAIGN_ENCRYPTION_KEY: 'x' });
  expect(() => clusterAt('localhost:7233')).toThrow(/^CAMPAIGN_ENCRYPTION_KEY: removed in 0\.3/);
});

/** Whether the command line reaches it. */
async function reaches(address: string): Promise<true> {
  const at = clusterAt(address);
  const temporal = await connect(at, homeAt(folder));
  await registerSearchAttributes(temporal, at, () => undefined);
  await temporal.close();
  return true;
}

/** Starts a real worker and ends it when it is ready; what it said if it ends before. */
async function worker(variables: NodeJS.ProcessEnv): Promise<string> {
  const [preload = '', program = ''] = ['register.cjs', 'step-worker.ts'].map((name) => resolve('test/support', name));
  const child = spawn(process.execPath, ['-r', preload, program], { env: { ...process.env, ...variables } });
  let said = '';
  child.stderr.on('data', (text) => (said += String(text)));
  child.stdout.on('data', (text) => {
    if (String(text).includes('"type":"ready"')) child.stdin.end();
  });
  const [code] = (await once(child, 'exit')) as [number];
  return code === 0 ? 'was ready' : said;
}

it('a client certificate of the profile reaches a cluster that wants one, from command line and worker', async () => {
  const { cert, key } = of('client');
  const profile = `[profile.cluster]\naddress = "${proxies.mutual.address}"\n`;
  const tls = `tls = { server_ca_cert_path = "${of('ca').cert}", client_cert_path = "${cert}", client_key_path = "${key}" }\n`;
  writeFileSync(join(folder, 'temporal.toml'), profile + tls);
  set({ TEMPORAL_CONFIG_FILE: join(folder, 'temporal.toml'), TEMPORAL_PROFILE: 'cluster', TEMPORAL_API_KEY: '' });
  await expect(reaches(proxies.mutual.address)).resolves.toBe(true);
  expect(await worker({})).toBe('was ready');
});

it('an API key does, and a worker that is refused says so at once', async () => {
  set({ ...trusted(), TEMPORAL_API_KEY: 'secret', TEMPORAL_ADDRESS: proxies.keyed.address });
  await expect(reaches(proxies.keyed.address)).resolves.toBe(true);
  expect(await worker({})).toBe('was ready');
  expect(await worker({ TEMPORAL_API_KEY: 'wrong' })).toContain('TEMPORAL_API_KEY');
});

it('loopback is reached without the proxies of the user, and an error beyond it names the variable', async () => {
  const dead = 'http://127.0.0.1:9';
  set({ http_proxy: dead, https_proxy: dead, grpc_proxy: dead, no_grpc_proxy: 'corp.example' });
  await expect(reaches(env().address)).resolves.toBe(true);
  expect(await worker({ TEMPORAL_ADDRESS: env().address })).toBe('was ready');
  const { port } = new URL(`tcp://${env().address}`);
  await expect(reaches(`0.0.0.0:${port}`)).rejects.toThrow('no_proxy');
});

it.each([
  [{}, 'localhost,127.0.0.1,::1', 'localhost,127.0.0.1,::1'],
  [{ NO_PROXY: 'corp.example' }, 'corp.example,localhost,127.0.0.1,::1', 'corp.example,localhost,127.0.0.1,::1'],
  [{ no_proxy: 'a, ::1', NO_PROXY: 'b' }, 'a,::1,localhost,127.0.0.1', 'b,localhost,127.0.0.1,::1'],
  [{ no_proxy: '*' }, '*', '*'],
])('loopback is excepted from proxies in %j', (own, lower, upper) => {
  const variables: NodeJS.ProcessEnv = { ...own };
  bypassProxiesOnLoopback(variables);
  expect(variables).toEqual({ no_proxy: lower, NO_PROXY: upper });
});

it('search attributes that this client cannot register are named for an operator', async () => {
  const proxy = await startTemporalProxy({ address: env().address, server: of('server'), refuses: /OperatorService/ });
  set(trusted());
  const at = clusterAt(proxy.address);
  const temporal = await connect(at, homeAt(folder));
  const notes: string[] = [];
  await registerSearchAttributes(temporal, at, (text) => void notes.push(text));
  await temporal.close();
  proxy.close();
  expect(notes).toEqual([expect.stringContaining('have an operator add CampaignName')]);
});

const trustedWith = (settings: Record<string, string>) => () => ({ ...trusted(), ...settings });
const cases: [at: () => string, settings: () => Record<string, string>, fix: string][] = [
  [() => proxies.keyed.address, trustedWith({ TEMPORAL_API_KEY: 'wrong' }), 'TEMPORAL_API_KEY'],
  [() => proxies.mutual.address, trusted, 'certificates in TEMPORAL_TLS_'],
  [() => proxies.keyed.address, () => ({}), 'without TLS'],
  [() => env().address, () => ({ TEMPORAL_TLS: 'true' }), 'over TLS'],
  [() => '127.0.0.1:1', () => ({}), '127.0.0.1:1'],
  [() => env().address, () => ({ TEMPORAL_PROFILE: 'production' }), 'TEMPORAL_CONFIG_FILE'],
];
it('a connection that fails is refused with its fix', async () => {
  // Side by side: most wait for the deadline. The settings are read before the first wait.
  const attempts = cases.map(([at, settings, fix]) => {
    set(settings());
    const refused = expect(reaches(at())).rejects.toThrow(fix);
    reset();
    return refused;
  });
  await Promise.all(attempts);
});

it("a home's own server and its workers are given nothing of a cluster's profile", async () => {
  const profile = '[profile.default]\naddress = "x.tmprl.cloud:7233"\napi_key = "key"\ntls = { server_name = "x" }\n';
  writeFileSync(join(folder, 'cloud.toml'), profile);
  set({ ...trusted(), ...certificate('client'), TEMPORAL_CONFIG_FILE: join(folder, 'cloud.toml') });
  set({ TEMPORAL_API_KEY: 'key', TEMPORAL_NAMESPACE: 'campaigns.a1b2c', TEMPORAL_GRPC_META_X: 'y' });
  const supervised = supervise();
  const end = new AbortController();
  atEnd(() => end.abort());
  const output = { note: () => undefined, show: () => undefined };
  const options = { home: supervised.home.root, uiPort: 0 };
  const run: SupervisedRun = { ...supervised, output, signal: end.signal, options };
  const { temporal, variables } = await startTemporal(run);
  await temporal.close();
  expect(await worker(variables)).toBe('was ready');
});

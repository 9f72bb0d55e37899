/** A campaign whose payloads are encrypted, on the server that campaigns run on: what that holds, and who can read it. */
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { temporal as protos } from '@temporalio/proto';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { startTemporal } from '../../src/cli/run/temporal-server';
import { startCampaign } from '../../src/cli/control';
import { connect } from '../../src/cli/temporal';
import { takeSnapshot } from '../../src/cli/watch/snapshot';
import { bundleFor, workerConverter } from '../../src/temporal/codec';
import { campaignCommand } from '../support/campaign-command';
import { atEnd, supervise } from '../support/supervised';
import { temporaryFolder } from '../support/temporary-folder';
import { until } from './campaigns';
import { devServer, queues, quiet, STORE, withWorkers, workflowBundle as bundle } from './environment';
import { config, fakeActivities } from './fake-activities';

jest.setTimeout(300_000);
quiet();
const made = () => randomBytes(32).toString('base64');
const [key, newer, other] = [made(), made(), made()];
const home = temporaryFolder();
const setKey = (...keys: string[]) => (process.env['CAMPAIGN_ENCRYPTION_KEY'] = keys.join(','));
let env: TestWorkflowEnvironment;
beforeAll(async () => {
  env = await devServer();
});
afterAll(async () => {
  delete process.env['CAMPAIGN_ENCRYPTION_KEY'];
  await env?.teardown();
});

const { History } = protos.api.history.v1;
const { Payloads } = protos.api.common.v1;
/** As they lie on the server: a client without the key can read no list of what has a memo. */
async function histories(): Promise<protos.api.history.v1.IHistory[]> {
  const { workflow, workflowService } = env.client;
  const { executions } = await workflowService.listWorkflowExecutions({ namespace: 'default' });
  const ids = executions.map(({ execution }) => [execution?.workflowId ?? '', execution?.runId ?? ''] as const);
  return Promise.all(ids.map((id) => workflow.getHandle(...id).fetchHistory()));
}
const command = (...argv: string[]) => campaignCommand(home, '--temporal-address', env.address, ...argv);

test('the server holds no clear text, and commands read everything', async () => {
  const { activities } = fakeActivities();
  const { train } = activities;
  let [away, broken] = [true, true];
  activities.train = async (input) => {
    Context.current().heartbeat({ kind: 'train', step: 3, steps: 4, hush: 'a secret place' });
    if (away) throw ApplicationFailure.retryable('a secret outage', 'PolicyServerUnavailable');
    if (broken && input.name === 'tell_what_is_asked')
      throw ApplicationFailure.nonRetryable('a secret fault', 'BadInput');
    return train(input);
  };
  const campaign = config({ name: 'sealed', baseModel: { path: 'a secret model' }, arms: [] });
  const at = { address: env.address, namespace: 'default' };
  const digests = { configDigests: { evaluation: 'a secret digest' } as never, terms: 'a secret term' };
  setKey(key);
  const starter = await connect(at);
  await startCampaign(starter, { campaign, store: STORE, ...digests });
  await starter.close();
  // What was encrypted before a rotation is read with the older key.
  setKey(newer, key);
  const temporal = await connect(at);
  await withWorkers(env, activities, async () => {
    const failed = await until(async () => {
      const { children } = await takeSnapshot(temporal, 'sealed');
      return children.flatMap((child) => child.activities).find((step) => step.lastFailure);
    });
    expect(failed).toMatchObject({ lastFailure: 'a secret outage', heartbeat: { hush: 'a secret place' } });
    away = false;
    await temporal.client.workflow.getHandle('sealed').result();
    broken = false;
    expect((await command('retry', 'sealed', 'tell_what_is_asked')).text).toMatch(/does again: tell_what_is_asked/);
    await temporal.client.workflow.getHandle('sealed').result();
  });
  await temporal.close();
  const bytes = (await histories()).map((history) => Buffer.from(History.encode(history).finish()));
  expect(bytes.length).toBeGreaterThan(3);
  for (const history of bytes) {
    expect(history.includes('binary/encrypted')).toBe(true);
    expect(history.includes('a secret')).toBe(false);
  }
  expect(JSON.parse((await command('status', 'sealed', '--json')).text)).toMatchObject({ name: 'sealed' });
});

test('without its key, or with another or a wrong one, that is what commands say', async () => {
  setKey();
  await expect(command('status', 'sealed')).rejects.toThrow(
    /encrypted with key [0-9a-f]{12}, and CAMPAIGN_ENCRYPTION_KEY is not set; set it to that key/,
  );
  setKey(other);
  await expect(command('retry', 'sealed')).rejects.toThrow(/CAMPAIGN_ENCRYPTION_KEY has [0-9a-f]{12}; .* add it after/);
  setKey(key, 'c2hvcnQ=');
  await expect(command('status')).rejects.toThrow(
    /^CAMPAIGN_ENCRYPTION_KEY: key 2 is not 32 bytes in base64; make one/,
  );
});

test("the codec server decrypts for the UI's pages, and for no others", async () => {
  setKey(newer, key);
  const preload = resolve('test/support/register.cjs');
  const args = ['-r', preload, 'src/cli/main.ts', 'codec-server', '--port', '0', '--json'];
  const server = spawn(process.execPath, args, { env: { ...process.env } });
  try {
    const [said] = (await once(server.stdout, 'data')) as [Buffer];
    const { url } = JSON.parse(String(said)) as { url: string };
    const started = (await histories()).flatMap(
      ({ events }) => events?.[0]?.workflowExecutionStartedEventAttributes ?? [],
    );
    const input = started.find(({ workflowType }) => workflowType?.name === 'campaign')?.input ?? {};
    const body = JSON.stringify(Payloads.toObject(Payloads.fromObject(input), { bytes: String }));
    const ask = (origin: string, path = '/decode') => fetch(url + path, { method: 'POST', headers: { origin }, body });
    const answer = await ask('http://localhost:8233');
    expect(answer.headers.get('access-control-allow-origin')).toBe('http://localhost:8233');
    const { payloads } = Payloads.fromObject((await answer.json()) as object);
    expect(String(payloads[0]?.metadata?.['encoding'])).toBe('json/plain');
    expect(JSON.parse(String(payloads[0]?.data))).toMatchObject({
      campaign: { baseModel: { path: 'a secret model' } },
    });
    expect((await ask('https://elsewhere.example')).status).toBe(403);
    expect((await ask('http://localhost:8233', '/encode')).status).toBe(404);
  } finally {
    server.kill();
  }
});

test('a step that came to a worker without the key has failed for want of it, and goes on elsewhere', async () => {
  setKey(key);
  const at = { connection: env.nativeConnection, taskQueue: queues.control };
  const { activities } = fakeActivities();
  const workflowBundle = await bundleFor((await bundle()).codePath);
  const keyed = await Worker.create({ ...at, workflowBundle, dataConverter: workerConverter() });
  setKey();
  const keyless = await Worker.create({ ...at, activities, dataConverter: workerConverter() });
  setKey(key);
  const temporal = await connect({ address: env.address, namespace: 'default' });
  const digests = { configDigests: {} as never, terms: '' };
  await startCampaign(temporal, { campaign: config({ name: 'unread', arms: [] }), store: STORE, ...digests });
  const handle = temporal.client.workflow.getHandle('unread');
  await keyless.runUntil(
    keyed.runUntil(async () => {
      const failed = await until(async () => {
        const { pendingActivities } = (await handle.describe()).raw;
        return pendingActivities?.find(({ lastFailure }) => lastFailure)?.lastFailure;
      });
      expect(failed.message).toMatch(/encrypted with key [0-9a-f]{12}, and CAMPAIGN_ENCRYPTION_KEY is not set; set it/);
      expect(failed.applicationFailureInfo).toMatchObject({ type: 'EncryptionKeyMissing', nonRetryable: false });
    }),
  );
  await withWorkers(env, activities, () => handle.result());
  await temporal.close();
});

test("the UI of a home's own server is told where the codec server listens", async () => {
  setKey(key);
  const supervised = supervise();
  const notes: string[] = [];
  const end = new AbortController();
  atEnd(() => end.abort());
  const output = { note: (_stage: string, text: string) => void notes.push(text), show: () => undefined };
  const options = { home: supervised.home.root, temporalPort: 0, uiPort: 0 };
  const { temporal, link } = await startTemporal({ ...supervised, output, signal: end.signal, options });
  await temporal.close();
  const ui = new URL(link ?? '').origin;
  expect(await (await fetch(`${ui}/api/v1/settings`)).json()).toMatchObject({
    Codec: { Endpoint: 'http://127.0.0.1:8234' },
  });
  expect(notes.at(-1)).toContain(`campaign codec-server --ui ${ui}`);
});

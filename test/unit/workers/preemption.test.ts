/** A cloud's notice, by a local server that answers as its metadata service is documented to. */
import type { IncomingMessage } from 'node:http';
import { watchForPreemption } from '../../../src/workers/preemption';
import { type Loopback, startLoopback } from '../../support/loopback';

interface Answer {
  status?: number;
  headers?: Record<string, string>;
  body?: string;
}
let server: Loopback | undefined;
let end: (() => void) | undefined;
afterEach(async () => {
  end?.();
  await server?.close();
});

async function serve(answer: (request: IncomingMessage) => Answer | Promise<Answer>): Promise<string> {
  server = await startLoopback((request, response) => {
    void Promise.resolve(answer(request)).then(({ status = 200, headers, body = '' }) =>
      response.writeHead(status, headers).end(body),
    );
  });
  return server.url;
}

/** What was said when the watch began, and what is said in the end. */
async function watched(cloud: string, address: string, change: () => void) {
  const said: string[] = [];
  const warn = jest.fn();
  let told = (): void => undefined;
  const notice = new Promise<void>((done) => (told = done));
  end = await watchForPreemption({ cloud, address, warn, onNotice: (text) => (said.push(text), told()) });
  expect(said).toEqual([]);
  change();
  await notice;
  expect(warn).not.toHaveBeenCalled();
  return said;
}

test('aws', async () => {
  const path = 'spot/instance-action';
  let isTold = false;
  const address = await serve(({ method, url, headers }) => {
    if (method === 'PUT' && url === '/latest/api/token' && headers['x-aws-ec2-metadata-token-ttl-seconds'])
      return { body: 'a token' };
    if (headers['x-aws-ec2-metadata-token'] !== 'a token') return { status: 401 };
    if (isTold && url === `/latest/meta-data/${path}`) return { body: '{"action":"terminate"}' };
    return { status: 404, body: '<html>not found</html>' };
  });
  const said = await watched('aws', address, () => (isTold = true));
  expect(said).toEqual([`aws takes this machine away: ${path} {"action":"terminate"}`]);
});

test('gcp: the answer comes with the change', async () => {
  const address = await serve(async ({ url, headers }) => {
    if (headers['metadata-flavor'] !== 'Google') return { status: 403 };
    const { pathname, searchParams } = new URL(url!, 'http://metadata');
    if (pathname !== '/computeMetadata/v1/instance/preempted') return { status: 404 };
    if (searchParams.get('wait_for_change') !== 'true') return { headers: { etag: 'first' }, body: 'FALSE' };
    if (searchParams.get('last_etag') !== 'first') return { status: 400 };
    await new Promise((changed) => setTimeout(changed, 200));
    return { headers: { etag: 'second' }, body: 'TRUE' };
  });
  expect(await watched('gcp', address, () => undefined)).toEqual([
    'gcp takes this machine away: instance/preempted TRUE',
  ]);
});

test('azure: this machine alone, and not for what it survives', async () => {
  const event = (type: string, machine: string) => ({
    EventId: 'f020ba2e',
    EventType: type,
    ResourceType: 'VirtualMachine',
    Resources: [machine],
    EventStatus: 'Scheduled',
    NotBefore: 'Mon, 19 Sep 2016 18:29:47 GMT',
    Description: '',
    EventSource: 'Platform',
    DurationInSeconds: -1,
  });
  const events = [event('Preempt', 'another'), event('Freeze', 'this')];
  const address = await serve(({ url, headers }) => {
    if (headers['metadata'] !== 'true') return { status: 400 };
    if (url === '/metadata/instance/compute/name?api-version=2021-02-01&format=text') return { body: 'this' };
    if (url === '/metadata/scheduledevents?api-version=2020-07-01')
      return { body: JSON.stringify({ DocumentIncarnation: 1, Events: events }) };
    return { status: 404 };
  });
  expect(await watched('azure', address, () => events.push(event('Preempt', 'this')))).toEqual([
    'azure takes this machine away: Preempt, not before Mon, 19 Sep 2016 18:29:47 GMT',
  ]);
});

test('a machine that is no such one goes on, and it is said once; a cloud that nobody knows is refused', async () => {
  let asked = 0;
  let again = (): void => undefined;
  const askedAgain = new Promise<void>((done) => (again = done));
  const address = await serve(() => {
    if (++asked === 2) again();
    return { status: 404 };
  });
  const onNotice = jest.fn();
  const warn = jest.fn();
  end = await watchForPreemption({ cloud: 'gcp', address, onNotice, warn });
  await askedAgain;
  expect(warn.mock.calls).toEqual([
    [`CAMPAIGN_PREEMPTION is gcp, and ${address} does not tell: /computeMetadata/v1/instance/preempted answers 404`],
  ]);
  expect(onNotice).not.toHaveBeenCalled();
  await expect(watchForPreemption({ cloud: 'gpc', onNotice, warn })).rejects.toThrow(
    'CAMPAIGN_PREEMPTION is gpc; write aws, gcp, azure, or leave it unset',
  );
});

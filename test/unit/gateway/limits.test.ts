/** Who is answered, how much may be asked at once, and what is cancelled; and the end is in order. */
import { connect } from 'node:net';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { completion, type DialectServer, startDialectServer } from '../../support/dialect-server';
import { fitByWords, startGateway } from '../../support/gateway';
import { atEnd, closedAfterwards } from '../../support/opened';
import { temporaryFolder } from '../../support/temporary-folder';

const store = openFolderStore(temporaryFolder());
let router: ArtifactRef;
let server: DialectServer;
let gateway: Awaited<ReturnType<typeof startGateway>>;

beforeAll(async () => void (router = await fitByWords(store)));
beforeEach(async () => void (server = closedAfterwards(await startDialectServer())));

async function start(o: Partial<Parameters<typeof startGateway>[0]> = {}): Promise<void> {
  gateway = closedAfterwards(await startGateway({ store, router, url: server.url, ...o }));
}
const portOf = () => new URL(gateway.url).port;

const bodyOf = (content: string, model = 'trace') => JSON.stringify({ model, messages: [{ role: 'user', content }] });
const ask = (content: string, headers: Record<string, string> = {}, more: RequestInit = {}) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: bodyOf(content),
    ...more,
  });
/** Its status and the code of its error. */
const refusal = async (answer: Response) => [
  answer.status,
  ((await answer.json()) as { error: { code: string } }).error.code,
];

/** Sends bytes as they are; all that comes until the connection ends. */
async function sendRaw(text: string): Promise<string> {
  const socket = connect(Number(portOf()), '127.0.0.1');
  let said = '';
  socket.on('data', (bytes: Buffer) => (said += bytes.toString())).on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(text);
  await once(socket, 'close');
  return said;
}
/** A request by hand, on a connection of its own; `more`: header lines as they are. */
const post = (body: string, { host = 'localhost', more = '' } = {}) =>
  `POST /v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n${more}\r\n${body}`;

/** Completions that are held until `open` is called. */
function held() {
  const waiting: (() => void)[] = [];
  let seen = 0;
  let given = 0;
  server.complete = async (_, response) => {
    seen++;
    response.on('close', () => given++);
    await new Promise<void>((resolve) => waiting.push(resolve));
    return completion({ content: 'late' });
  };
  const until = async (count: number) => {
    while (seen < count) await sleep(10);
  };
  return { until, open: () => waiting.splice(0).forEach((go) => go()), ended: () => given };
}

test('without the key nothing under /v1 is answered', async () => {
  await start({ apiKey: 'right' });
  for (const authorization of ['', 'Bearer wrong', 'right', 'Bearer right2']) {
    const refused = await ask('a book', authorization ? { authorization } : {});
    expect(await refusal(refused)).toEqual([401, 'invalid_api_key']);
  }
  expect((await ask('a book', { authorization: 'Bearer right' })).status).toBe(200);
  expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(401);
  expect(server.requests.filter(({ call }) => call.includes('chat'))).toHaveLength(1);
});

test('without a key nothing is answered to a name that leads here by the doing of a page', async () => {
  await start();
  for (const path of ['/healthz', '/v1/models', '/other'])
    expect(await sendRaw(`GET ${path} HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 403 /,
    );
});

const evil = 'x-conversation-id: a\nx-evil: 1\r\n';
test.each<[string, string, RegExp]>([
  ['a name that a page has lead here', post('{}', { host: 'evil.example:80' }), /403 [^]*without a key only localhost/],
  ['a name that begins like this machine’s', post('{}', { host: '127.0.0.1.evil.example' }), /403 /],
  ['nothing in its body, from this machine', post('{}', { host: 'localhost:8000' }), /400 /],
  ['a newline in a header', post(bodyOf('a book'), { more: evil }), /400 (?![^]*evil)/],
])('a request with %s is refused', async (_, request, said) => {
  await start();
  expect(await sendRaw(request)).toMatch(new RegExp(`^HTTP/1\\.1 ${said.source}`));
  expect(server.requests).toEqual([]);
});

test.each<[string, () => Promise<Response>, unknown[]]>([
  ['a body that is too large', () => ask('x'.repeat(100_001)), [413, 'body_too_large']],
  ['a body that is no JSON', () => ask('', {}, { body: '{"model":' }), [400, null]],
  ['the type that any page may send', () => ask('hi', { 'content-type': 'text/plain' }), [415, null]],
  ['a newline in its model', () => ask('', {}, { body: bodyOf('a book', 'a\nb: c') }), [404, 'model_not_found']],
])('a request with %s is refused, and the next one is answered', async (_, asked, told) => {
  await start();
  expect(await refusal(await asked())).toEqual(told);
  expect((await ask('a book')).status).toBe(200);
});

test('bodies of millions of values are refused before they are parsed, and others are answered meanwhile', async () => {
  await start({ limits: { bodyBytes: 16_000_000 } });
  const many = (field: string, value: string) => `{"model":"trace","${field}":[${`${value},`.repeat(2e6)}${value}]}`;
  const bodies = [many('messages', '{}'), many('stop', '1'), `[${'{},'.repeat(5e6)}{}]`, '['.repeat(15e6)];
  const parsed = jest.spyOn(JSON, 'parse');
  atEnd(() => parsed.mockRestore());
  const refusals = bodies.map(async (body) => refusal(await ask('', {}, { body })));
  expect((await ask('a book')).status).toBe(200);
  expect(await Promise.all(refusals)).toEqual(bodies.map(() => [400, null]));
  expect(Math.max(...parsed.mock.calls.map(([text]) => text.length))).toBeLessThan(10_000);
});

test('a body without an end is given up', async () => {
  await start();
  const body = new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(10_000)) });
  const endless = await ask('', {}, { body, duplex: 'half' } as RequestInit).catch(() => undefined);
  expect([413, undefined]).toContain(endless?.status);
  expect((await ask('a book')).status).toBe(200);
});

test('beyond the limit of requests at once one is refused with 429; who goes away leaves room', async () => {
  await start({ limits: { concurrency: 2 } });
  const { until, open, ended } = held();
  const gone = new AbortController();
  const first = ask('a book', {}, { signal: gone.signal }).catch(() => 'gone');
  const second = ask('a ship');
  await until(2);
  const third = await ask('hello');
  expect(third.headers.get('retry-after')).toBe('1');
  expect(await refusal(third)).toEqual([429, 'rate_limit_exceeded']);
  gone.abort();
  expect(await first).toBe('gone');
  while (ended() < 1) await sleep(10);
  // The gateway sees the end of the connection when the policy server does.
  await sleep(100);
  const fourth = ask('hello');
  await until(3);
  open();
  expect([(await second).status, (await fourth).status]).toEqual([200, 200]);
});

test('at its end it answers what it has begun, within the grace time, and takes nothing new', async () => {
  await start();
  const { until, open } = held();
  const begun = ask('a book');
  await until(1);
  gateway.drain();
  expect((await ask('a ship')).status).toBe(503);
  expect(await (await fetch(`${gateway.url}/healthz`)).json()).toMatchObject({ status: 'draining' });
  const closed = gateway.close(60);
  await expect(ask('a ship').then(({ status }) => status)).rejects.toThrow();
  open();
  expect((await begun).status).toBe(200);
  await closed;
  await start();
  const { until: again } = held();
  const lost = ask('a book');
  await again(1);
  await gateway.close(0);
  expect((await lost).status).toBe(503);
});

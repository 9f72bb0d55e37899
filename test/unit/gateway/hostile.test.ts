/** Clients that are slow, have no key, ask too much or for others' conversations cost themselves only; and the end is in order. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ArtifactStore } from '../../../src/artifacts/store';
import { completion, type DialectServer, startDialectServer } from '../../support/dialect-server';
import { fitByWords, startGateway } from '../../support/gateway';
import { temporaryStore } from '../../support/temporary-store';

let store: ArtifactStore;
temporaryStore((opened) => (store = opened));
let server: DialectServer;
let gateway: Awaited<ReturnType<typeof startGateway>>;

beforeEach(async () => void (server = await startDialectServer()));
afterEach(async () => {
  await gateway.close();
  await server.close();
});

async function start(o: Partial<Parameters<typeof startGateway>[0]> = {}): Promise<void> {
  gateway = await startGateway({ store, router: await fitByWords(store), url: server.url, ...o });
}

const ask = (content: string, headers: Record<string, string> = {}, more: RequestInit = {}) =>
  fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'trace', messages: [{ role: 'user', content }] }),
    ...more,
  });
const codeOf = async (answer: Response) => ((await answer.json()) as { error: { code: string } }).error.code;

/** Sends bytes as they are; all that comes until the connection ends. */
async function sendRaw(text: string): Promise<string> {
  const { port } = new URL(gateway.url);
  const socket = connect(Number(port), '127.0.0.1');
  let said = '';
  socket.on('data', (bytes: Buffer) => (said += bytes.toString())).on('error', () => undefined);
  await once(socket, 'connect');
  socket.write(text);
  await once(socket, 'close');
  return said;
}

/** As many as this machine lets a process open, up to ten thousand. */
const MOST_FILES = Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity);
const HELD = Math.min(10_000, MOST_FILES - 1000);
const FLOOD = `
  const [port, count] = process.argv.slice(1).map(Number);
  let [open, ended] = [0, 0];
  const more = () => {
    if (open + ended === count) return process.stdout.write(open + ' held, ' + ended + ' ended');
    const socket = require('node:net').connect(port, '127.0.0.1');
    socket.on('error', () => undefined).once('connect', () => { open++; more(); }).once('close', () => { ended++; });
  };
  more();`;

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

test('without the key nothing under /v1 is answered; health and metrics are', async () => {
  await start({ apiKey: 'right' });
  for (const authorization of ['', 'Bearer wrong', 'right', 'Bearer right2']) {
    const refused = await ask('a book', authorization ? { authorization } : {});
    expect([refused.status, await codeOf(refused)]).toEqual([401, 'invalid_api_key']);
  }
  expect((await ask('a book', { authorization: 'Bearer right' })).status).toBe(200);
  expect((await fetch(`${gateway.url}/v1/models`)).status).toBe(401);
  expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200);
  expect(server.requests.filter(({ call }) => call.includes('chat'))).toHaveLength(1);
});

test('without a key a page that has its own name lead here is not answered', async () => {
  await start();
  const body = '{}';
  const asked = (host: string) =>
    sendRaw(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
  expect(await asked('evil.example:80')).toMatch(/^HTTP\/1\.1 403 [^]*without a key only localhost/);
  expect(await asked('127.0.0.1.evil.example')).toMatch(/^HTTP\/1\.1 403 /);
  expect(await asked('localhost:8000')).toMatch(/^HTTP\/1\.1 400 /);
});

test('a body that is too large, or no JSON, or of a page, is refused', async () => {
  await start();
  const large = await ask('x'.repeat(100_001));
  expect([large.status, await codeOf(large)]).toEqual([413, 'body_too_large']);
  const chunked = new ReadableStream({
    pull(controller) {
      controller.enqueue(new Uint8Array(10_000));
    },
  });
  const endless = await ask('', {}, { body: chunked, duplex: 'half' } as RequestInit).catch(() => undefined);
  expect([413, undefined]).toContain(endless?.status);
  expect((await ask('', {}, { body: '{"model":' })).status).toBe(400);
  expect((await ask('hi', { 'content-type': 'text/plain' })).status).toBe(415);
  expect((await ask('a book')).status).toBe(200);
});

test('who sends slowly is cut off, and others are answered meanwhile', async () => {
  await start({ headMs: 300, requestMs: 600 });
  const path = 'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n';
  const slow = [
    sendRaw(path),
    sendRaw(`${path}content-type: application/json\r\ncontent-length: 100\r\n\r\n{"model":`),
  ];
  expect((await ask('a book')).status).toBe(200);
  for (const said of await Promise.all(slow)) expect(said).toMatch(/^HTTP\/1.1 408 /);
});

test('a header with a newline in it makes no header', async () => {
  await start();
  const body = JSON.stringify({ model: 'trace', messages: [{ role: 'user', content: 'a book' }] });
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`;
  const said = await sendRaw(`${head}x-conversation-id: a\nx-evil: 1\r\n\r\n${body}`);
  expect(said).toMatch(/^HTTP\/1.1 400 /);
  expect(said).not.toMatch(/evil/);
  expect((await ask('a book', { 'x-conversation-id': 'x'.repeat(300) })).status).toBe(400);
  const odd = await ask('a book', {}, { body: body.replace('"trace"', '"a\\nb: c"') });
  expect([odd.status, await codeOf(odd)]).toEqual([404, 'model_not_found']);
});

test('who names another conversation gets its policy, and changes nothing for it', async () => {
  await start();
  const policy = async (content: string, id: string) =>
    (await ask(content, { 'x-conversation-id': id })).headers.get('x-campaign-policy');
  expect(await policy('a book', 'mine')).toBe('books');
  expect(await policy('a ship', 'mine')).toBe('books');
  expect(await policy('a book', 'mine')).toBe('books');
  expect(await policy('a ship', 'other')).toBe('ships');
});

test('beyond the limit of requests at once one is refused with 429; who goes away leaves room', async () => {
  await start({ limits: { concurrency: 2 } });
  const { until, open, ended } = held();
  const gone = new AbortController();
  const first = ask('a book', {}, { signal: gone.signal }).catch(() => 'gone');
  const second = ask('a ship');
  await until(2);
  const third = await ask('hello');
  expect([third.status, third.headers.get('retry-after'), await codeOf(third)]).toEqual([
    429,
    '1',
    'rate_limit_exceeded',
  ]);
  gone.abort();
  expect(await first).toBe('gone');
  while (ended() < 1 || gateway.running() > 1) await sleep(10);
  const fourth = ask('hello');
  await until(3);
  open();
  expect([(await second).status, (await fourth).status]).toEqual([200, 200]);
});

test('an answer that takes too long is given up with 504', async () => {
  await start({ limits: { seconds: 0.3 } });
  const { ended } = held();
  const late = await ask('a book');
  expect([late.status, await codeOf(late)]).toEqual([504, 'timeout']);
  while (ended() < 1) await sleep(10);
});

test('at its end it answers what it has begun, within the grace time, and takes nothing new', async () => {
  await start();
  const { until, open } = held();
  const begun = ask('a book');
  await until(1);
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

test('ten thousand connections that say nothing are held, and others are answered', async () => {
  await start({ headMs: 60_000, requestMs: 60_000 });
  const { port } = new URL(gateway.url);
  // In a process of its own, which may open as many files as this one.
  const flood = spawn(process.execPath, ['-e', FLOOD, port, String(HELD)], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const [told] = (await once(flood.stdout, 'data')) as [Buffer];
    expect(told.toString()).toBe(`${HELD} held, 0 ended`);
    const body = JSON.stringify({ model: 'trace', messages: [{ role: 'user', content: 'a ship' }] });
    const head =
      'POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nconnection: close';
    // A connection of its own.
    expect(await sendRaw(`${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`)).toMatch(/^HTTP\/1\.1 200 /);
    expect((await ask('a book')).status).toBe(200);
  } finally {
    flood.kill('SIGKILL');
  }
}, 120_000);

test('a thousand conversations, while adapters come and go: each hears its own policy and its own words', async () => {
  // Not cut off, however long this machine takes to read a thousand at once.
  await start({ maxLoadedAdapters: 1, limits: { concurrency: 1000 }, headMs: 60_000, requestMs: 60_000 });
  server.complete = ({ model, messages }) => {
    const { content } = (messages as { content: string }[]).at(-1)!;
    return completion({ content: `${server.adapters.get(String(model)) ?? 'base'}: ${content}` });
  };
  const adapters = new Set<string>();
  const heard = await Promise.all(
    Array.from({ length: 1000 }, async (_, n) => {
      const said = `${['book', 'ship', 'hello'][n % 3]} ${n}`;
      const answer = await ask(said, { 'x-conversation-id': `c-${n}` });
      const { choices } = (await answer.json()) as { choices: [{ message: { content: string } }] };
      const [folder = '', words] = choices[0].message.content.split(': ');
      adapters.add(`${answer.headers.get('x-campaign-policy')} by ${folder}`);
      return words === said;
    }),
  );
  expect(heard.every(Boolean)).toBe(true);
  expect(adapters.size).toBe(3);
});

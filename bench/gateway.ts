/**
 * The gateway against the policy server alone, side by side in one run:
 *
 *   node -r ./test/support/register.cjs bench/gateway.ts [--streams 64] [--seconds 8] [--latency 300] [--rounds 5]
 *
 * The policy server is a stub that streams each turn of 64 tokens, in as many events, over `latency` ms on average (half of it to one and a half, so that streams do not march
 * in step), in a process of its own, as the gateway is: what is measured is what the gateway adds. Each stream asks one turn after the other. Prints one JSON object.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openFolderStore } from '../src/artifacts/open-store';
import { BASE } from '../test/support/dialect-server';
import { fitByWords, startGateway } from '../test/support/gateway';
import { openPoster } from './post';

const { values } = parseArgs({
  options: {
    streams: { type: 'string', default: '64' },
    seconds: { type: 'string', default: '8' },
    latency: { type: 'string', default: '300' },
    rounds: { type: 'string', default: '5' },
    role: { type: 'string', default: '' },
    store: { type: 'string', default: '' },
    behind: { type: 'string', default: '' },
  },
});
const [streams, seconds, latency, rounds] = [values.streams, values.seconds, values.latency, values.rounds].map(
  Number,
) as [number, number, number, number];
const TOKENS = 64;

/** Tells its parent where it listens. */
function listening(url: string): void {
  process.on('message', () => process.send!(process.cpuUsage()));
  process.send!(url);
}

function stub(): void {
  const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
  const about = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 0, model: 'base' };
  const chunk = (delta: object, finish_reason: string | null = null) =>
    event({ ...about, choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
  const token = chunk({ content: 'word ' });
  const usage = { prompt_tokens: 500, completion_tokens: TOKENS, total_tokens: 564 };
  const last = `${chunk({}, 'stop')}${event({ ...about, choices: [], usage })}data: [DONE]\n\n`;
  let turns = 0;
  const open = new Set<() => void>();
  setInterval(() => open.forEach((send) => send()), 2);
  function answer(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    // Spread evenly, and by the clock: drawn at random, or by timers that are late on busy cores, medians differ by more than what is measured.
    const [begun, every] = [performance.now(), (latency * (0.5 + ((turns++ * 0.618034) % 1))) / TOKENS];
    let sent = 0;
    const send = () => {
      for (; sent < TOKENS && begun + every * (sent + 1) <= performance.now(); sent++) response.write(token);
      if (sent < TOKENS) return;
      open.delete(send);
      // In two packets, as vLLM ends its streams.
      response.write(last);
      setImmediate(() => response.end());
    };
    open.add(send);
  }
  const loaded = new Set<string>();
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    const end = (body: string) => response.writeHead(200, { 'content-type': 'application/json' }).end(body);
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      if (request.url === '/v1/chat/completions') return answer(response);
      const { lora_name: name } = JSON.parse(Buffer.concat(parts).toString() || '{}') as { lora_name?: string };
      if (name) loaded.add(name);
      const data = [{ id: 'base', root: BASE }, ...[...loaded].map((id) => ({ id, parent: 'base' }))];
      return end(JSON.stringify({ data }));
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => listening(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
}

async function gateway(): Promise<void> {
  const store = openFolderStore(values.store);
  const limits = { concurrency: 4 * streams, bodyBytes: 2 ** 23 };
  listening((await startGateway({ store, router: await fitByWords(store), url: values.behind, limits })).url);
}

async function start(role: string, ...options: string[]) {
  const child = fork(__filename, [
    '--role',
    role,
    '--latency',
    values.latency,
    '--streams',
    values.streams,
    ...options,
  ]);
  const [url] = (await once(child, 'message')) as [string];
  /** CPU of the process by now, in microseconds. */
  const cpu = async (): Promise<number> => {
    child.send('cpu');
    const [{ user, system }] = (await once(child, 'message')) as [NodeJS.CpuUsage];
    return user + system;
  };
  return { url, cpu, stop: () => child.kill() };
}

interface Measured {
  turns: number;
  turnsPerSecond: number;
  medianMs: number;
}

/** A conversation of four turns again and again on each stream. */
async function load(url: string, model: string): Promise<Measured> {
  const { post, close } = openPoster({ url, connections: streams });
  const times: number[] = [];
  const rules = 'rule '.repeat(400);
  const [begun, end] = [performance.now(), performance.now() + seconds * 1000];
  const stream = async (n: number): Promise<void> => {
    for (let conversation = 0; performance.now() < end; conversation++) {
      const messages = [
        { role: 'system', content: rules },
        { role: 'user', content: `${['book', 'ship', 'what'][n % 3]} ${n} ${conversation}` },
      ];
      for (let turn = 0; turn < 4 && performance.now() < end; turn++) {
        const asked = performance.now();
        await post(JSON.stringify({ model, messages, stream: true, max_tokens: TOKENS }));
        times.push(performance.now() - asked);
        messages.push({ role: 'assistant', content: 'word '.repeat(TOKENS) }, { role: 'user', content: 'go on' });
      }
    }
  };
  await Promise.all(Array.from({ length: streams }, (_, n) => stream(n)));
  const took = (performance.now() - begun) / 1000;
  close();
  return { turns: times.length, turnsPerSecond: times.length / took, medianMs: median(times) };
}

const median = (numbers: number[]): number => [...numbers].sort((a, b) => a - b)[numbers.length >> 1]!;
const rounded = (value: number): number => Number(value.toPrecision(4));

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-gateway-'));
  const server = await start('stub');
  const front = await start('gateway', '--store', folder, '--behind', server.url);
  try {
    await load(front.url, 'trace'); // warm
    const before = await front.cpu();
    const found: { alone: Measured; gateway: Measured }[] = [];
    for (let round = 0; round < rounds; round++) {
      const first = round % 2 === 0 ? await load(server.url, 'base') : undefined;
      const routed = await load(front.url, 'trace');
      found.push({ alone: first ?? (await load(server.url, 'base')), gateway: routed });
    }
    const turns = found.reduce((sum, one) => sum + one.gateway.turns, 0);
    // What is left of the figures when others use the machine as well.
    const cpuMicroseconds = rounded(((await front.cpu()) - before) / turns);
    const ratio = median(found.map((one) => one.gateway.turnsPerSecond / one.alone.turnsPerSecond));
    const addedMs = median(found.map((one) => one.gateway.medianMs - one.alone.medianMs));
    const of = (side: 'alone' | 'gateway') => rounded(median(found.map((one) => one[side].turnsPerSecond)));
    const line = { bench: 'gateway', ratio: rounded(ratio), wanted: 0.95, addedMs: rounded(addedMs), wantedMs: 5 };
    console.log(
      JSON.stringify({
        ...line,
        streams,
        latency,
        rounds,
        alone: of('alone'),
        gateway: of('gateway'),
        cpuMicroseconds,
      }),
    );
  } finally {
    front.stop();
    server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

const roles: Record<string, () => void | Promise<void>> = { stub, gateway, '': main };
void roles[values.role]!();

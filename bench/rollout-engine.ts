/**
 * The rollout engine against the policy server's own closed-loop maximum, side by side in one run:
 *
 *   node -r ./test/support/register.cjs bench/rollout-engine.ts [--model models/base] [--tasks 100] [--attempts 16] ...
 *
 * `raw` is what the server can do: as many HTTP clients as the engine's concurrency send the very requests that the engine has sent,
 * ready-made, one after the other per episode, and look at nothing in the answers. Each measurement has a server of its own, so
 * that no prefix cache is warm. Prints one JSON object.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Agent } from 'undici';
import { openFolderStore } from '../src/store/open-store';
import { createShop } from '../examples/shop/target/shop';
import { createPolicyClient } from '../src/policy/client';
import { createMerger } from '../src/policy/merge';
import { completionBody } from '../src/policy/wire';
import { rollOut, type RolloutBatch } from '../src/rollout/engine';
import { turnSeed } from '../src/rollout/batch';
import { forEachBounded } from '../src/domain/concurrency';
import { type EmbeddedServer, startEmbeddedServer } from '../test/support/embedded-server';

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: 'models/base' },
    tasks: { type: 'string', default: '100' },
    attempts: { type: 'string', default: '16' },
    concurrency: { type: 'string', default: '64' },
    rounds: { type: 'string', default: '5' },
    threads: { type: 'string', default: '1' },
    'max-tokens': { type: 'string', default: '48' },
  },
});
const [tasks, attempts, concurrency, rounds] = [values.tasks, values.attempts, values.concurrency, values.rounds].map(
  Number,
) as [number, number, number, number];
const sampling = { temperature: 1, topP: 1, maxTokens: Number(values['max-tokens']) };
const folder = mkdtempSync(join(tmpdir(), 'bench-'));

interface Measured {
  tokensPerSecond: number;
  requestsPerSecond: number;
  /** CPU of this process, per request. */
  cpuMicroseconds: number;
}

/** Runs the engine on the shop's tasks `from`..`from + count`. */
function engine({ server, from, count, name }: { server: EmbeddedServer; from: number; count: number; name: string }) {
  const store = openFolderStore(join(folder, name));
  const merge = createMerger({ store, python: '.venv/bin/python' });
  const client = createPolicyClient({ url: server.url, concurrency, store, merge });
  const names = Array.from({ length: count }, (_, n) => `train-${from + n}`);
  return rollOut({
    environment: createShop(),
    policy: { base: server.base, adapters: [] },
    tasks: names,
    attempts,
    sampling,
    seed: 1,
    concurrency,
    campaign: 'bench',
    purpose: 'test',
    title: 'bench',
    maxAttempts: 1,
    store,
    client,
  }).finally(() => client.close());
}

/** The requests of every episode of a batch, in the engine's order. */
async function requestsOf({ records }: RolloutBatch): Promise<string[][]> {
  const { tools } = await createShop().describe();
  const episodes: string[][] = [];
  for (const rollout of await records()) {
    if (rollout.status !== 'scored') throw new Error(`broken rollout: ${rollout.error.message}`);
    const { messages, key } = rollout;
    const turns = messages.flatMap(({ role }, n) => (role === 'assistant' ? [n] : []));
    episodes.push(
      turns.map((n, turn) =>
        JSON.stringify(
          completionBody({
            model: 'base',
            messages: messages.slice(0, n),
            tools,
            sampling,
            seed: turnSeed({ key, turn }),
          }),
        ),
      ),
    );
  }
  return episodes;
}

async function raw({ url, episodes }: { url: string; episodes: string[][] }): Promise<void> {
  const agent = new Agent({ connections: concurrency });
  const request = { origin: url, path: '/v1/chat/completions', method: 'POST' } as const;
  const headers = { 'content-type': 'application/json' };
  await forEachBounded({
    items: episodes,
    concurrency,
    work: async (bodies) => {
      for (const body of bodies) {
        const answer = await agent.request({ ...request, headers, body });
        if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}`);
        await answer.body.dump();
      }
    },
  });
  await agent.close();
}

/** Tokens that the server has sampled so far. */
async function sampledTokens(url: string): Promise<{ tokens: number; requests: number }> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const sum = (pattern: RegExp) => [...text.matchAll(pattern)].reduce((total, [, value]) => total + Number(value), 0);
  return {
    tokens: sum(/^\w*completion_tokens\w*(?:\{.*?\})? (\S+)$/gm),
    requests: sum(/^\w*requests_total(?:\{.*?\})? (\S+)$/gm),
  };
}

/** Starts a server, warms it up on other tasks, and measures `work`. */
async function measure(name: string, work: (server: EmbeddedServer) => Promise<unknown>): Promise<Measured> {
  const server = await startEmbeddedServer({
    model: values.model,
    args: ['--threads', values.threads, '--max-batch', String(concurrency)],
  });
  try {
    await engine({ server, from: 300, count: Math.ceil(concurrency / attempts), name: `${name}-warm` });
    const before = await sampledTokens(server.url);
    const [cpu, started] = [process.cpuUsage(), performance.now()];
    await work(server);
    const seconds = (performance.now() - started) / 1000;
    const { user, system } = process.cpuUsage(cpu);
    const after = await sampledTokens(server.url);
    const requests = after.requests - before.requests;
    return {
      tokensPerSecond: (after.tokens - before.tokens) / seconds,
      requestsPerSecond: requests / seconds,
      cpuMicroseconds: (user + system) / requests,
    };
  } finally {
    await server.stop();
  }
}

const median = (numbers: number[]): number => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!;
const rounded = (value: object) =>
  JSON.parse(
    JSON.stringify(value, (_, v: unknown) => (typeof v === 'number' ? Number(v.toPrecision(4)) : v)),
  ) as object;

async function main(): Promise<void> {
  let episodes: string[][] = [];
  await measure('record', async (server) => {
    episodes = await requestsOf(await engine({ server, from: 0, count: tasks, name: 'record' }));
  });
  const results: { raw: Measured; engine: Measured; ratio: number }[] = [];
  for (let round = 0; round < rounds; round++) {
    const name = `engine-${round}`;
    const ours = () => measure(name, (server) => engine({ server, from: 0, count: tasks, name }));
    const theirs = () => measure(`raw-${round}`, ({ url }) => raw({ url, episodes }));
    // Who goes first changes from round to round: the machine may get slower or faster meanwhile.
    const [first, second] = round % 2 === 0 ? [await theirs(), await ours()] : [await ours(), await theirs()];
    const [rawResult, engineResult] = round % 2 === 0 ? [first, second] : [second, first];
    results.push({
      raw: rawResult,
      engine: engineResult,
      ratio: engineResult.tokensPerSecond / rawResult.tokensPerSecond,
    });
  }
  const ratio = median(results.map((result) => result.ratio));
  const load = { model: values.model, rollouts: tasks * attempts, turns: episodes.flat().length, concurrency };
  console.log(JSON.stringify(rounded({ bench: 'rollout-engine', ratio, wanted: 0.9, ...load, rounds: results })));
}

void main().finally(() => rmSync(folder, { recursive: true, force: true }));

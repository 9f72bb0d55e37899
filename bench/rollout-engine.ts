/**
 * The rollout engine against the policy server's own closed-loop maximum, side by side in one run:
 *
 *   node -r ./test/support/register.cjs bench/rollout-engine.ts [--model models/base]
 *
 * `raw` is what the server can do: as many HTTP clients as the engine's concurrency send the very requests that the engine has sent,
 * ready-made, one after the other per episode, and look at nothing in the answers. Each measurement has a server of its own, so
 * that no prefix cache is warm. Prints one JSON object; seconds are those of one round.
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
import { turnSeed } from '../src/rollout/play';
import { median } from '../src/domain/statistics';
import { forEachBounded } from '../src/domain/concurrency';
import { type EmbeddedServer, startEmbeddedServer } from '../test/support/embedded-server';

const { model } = parseArgs({ options: { model: { type: 'string', default: 'models/base' } } }).values;
const [tasks, attempts, concurrency, rounds] = [100, 16, 64, 5];
const sampling = { temperature: 1, topP: 1, maxTokens: 48 };
const folder = mkdtempSync(join(tmpdir(), 'bench-'));

/** Runs the engine on the shop's tasks `from`..`from + count`. */
function engine({ server, from = 0, count = tasks }: { server: EmbeddedServer; from?: number; count?: number }) {
  const store = openFolderStore(mkdtempSync(join(folder, 'store-')));
  const merge = createMerger({ store, python: '.venv/bin/python' });
  const client = createPolicyClient({ url: server.url, concurrency, store, merge });
  return rollOut({
    ...{ environment: createShop(), policy: { base: server.base, adapters: [] }, store, client },
    ...{ tasks: Array.from({ length: count }, (_, n) => `train-${from + n}`), attempts, sampling, concurrency },
    ...{ seed: 1, maxAttempts: 1, campaign: 'bench', purpose: 'test', title: 'bench' },
  }).finally(() => client.close());
}

/** The requests of every episode of a batch, in the engine's order. */
async function requestsOf({ records }: RolloutBatch): Promise<string[][]> {
  const { tools } = await createShop().describe();
  return (await records()).map((rollout) => {
    if (rollout.status !== 'scored') throw new Error(`broken rollout: ${rollout.error.message}`);
    const { messages, key } = rollout;
    const turns = messages.flatMap(({ role }, n) => (role === 'assistant' ? [n] : []));
    return turns.map((n, turn) => {
      const asked = { model: 'base', messages: messages.slice(0, n), tools, sampling, seed: turnSeed({ key, turn }) };
      return JSON.stringify(completionBody(asked));
    });
  });
}

async function raw({ server, episodes }: { server: EmbeddedServer; episodes: string[][] }): Promise<void> {
  const agent = new Agent({ connections: concurrency });
  const request = { origin: server.url, path: '/v1/chat/completions', method: 'POST' } as const;
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

/** Starts a server, warms it up on other tasks, and returns the result of `work` and its seconds. */
async function measure<T>(work: (server: EmbeddedServer) => Promise<T>): Promise<{ result: T; seconds: number }> {
  const server = await startEmbeddedServer({ model, args: ['--max-batch', String(concurrency)] });
  try {
    await engine({ server, from: 300, count: Math.ceil(concurrency / attempts) });
    const started = performance.now();
    const result = await work(server);
    return { result, seconds: (performance.now() - started) / 1000 };
  } finally {
    await server.stop();
  }
}

async function main(): Promise<void> {
  const { result: episodes } = await measure(async (server) => requestsOf(await engine({ server })));
  const seconds: Record<'raw' | 'engine', number[]> = { raw: [], engine: [] };
  for (let round = 0; round < rounds; round++) {
    // The order alternates between rounds, because the machine may get slower or faster meanwhile.
    for (const side of round % 2 === 0 ? (['raw', 'engine'] as const) : (['engine', 'raw'] as const)) {
      const work = (server: EmbeddedServer) => (side === 'raw' ? raw({ server, episodes }) : engine({ server }));
      seconds[side].push((await measure<unknown>(work)).seconds);
    }
  }
  const ratio = median(seconds.raw.map((one, round) => one / seconds.engine[round]!));
  const load = { model, rollouts: tasks * attempts, turns: episodes.flat().length, concurrency };
  console.log(JSON.stringify({ bench: 'rollout-engine', ratio, wanted: 0.9, ...load, seconds }));
}

void main().finally(() => rmSync(folder, { recursive: true, force: true }));

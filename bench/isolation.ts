/**
 * The event loops of a control and a rollouts worker while 256 rollouts run and hostile answers of 15 MB arrive, on a real Temporal server:
 *
 *   node -r ./test/support/register.cjs bench/isolation.ts
 *
 * One campaign plays 256 rollouts at once. Beside it the program of a second campaign's target answers steps with 15 MB of JSON, and the analyst's
 * language model of a third one answers with 15 MB. Wanted: a delay of at most 100 ms at the 99th percentile. `idle` is a process
 * without work: its delays are those of the machine. Needs `make build`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { campaignSchema } from '../src/domain/campaign';
import { type QueueName, taskQueues } from '../src/domain/work';
import { openStore } from '../src/store/open-store';
import type { Sampling } from '../src/domain/rollout';
import { BASE, completion, startDialectServer } from '../test/support/dialect-server';
import { startLoopback } from '../test/support/loopback';
import { devServer, quiet, start } from '../test/workflows/environment';

const repository = resolve(__dirname, '..');
const fixtures = join(repository, 'test/fixtures/isolation');
const folder = mkdtempSync(join(tmpdir(), 'bench-isolation-'));
const home = join(folder, 'home');
const POOL = 'isolation';
const CONCURRENCY = 256;
const LATENCY_MS = 1_000;
const WARM_UP_MS = 15_000;
const MEASURED_MS = 30_000;
const BODY_BYTES = 15e6;

const targetOf = (...args: string[]) => ({
  kind: 'process',
  command: [process.execPath, join(fixtures, 'target.mjs'), ...args],
  cwd: repository,
});

interface Measured {
  reset(): void;
  delays(): object;
  stop(): Promise<unknown>;
}

/** Starts a Node process that measures its event loop, and waits until it prints that it is ready. */
async function startMeasured(name: string, args: string[], variables: NodeJS.ProcessEnv = {}): Promise<Measured> {
  const file = join(folder, `${name}.json`);
  const NODE_OPTIONS = `--import ${join(fixtures, 'event-loop.mjs')}`;
  const child = spawn(process.execPath, args, {
    cwd: repository,
    env: { ...process.env, ...variables, EVENT_LOOP_FILE: file, NODE_OPTIONS },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  const ended = once(child, 'exit');
  const measured = {
    reset: () => void child.kill('SIGHUP'),
    delays: () => JSON.parse(readFileSync(file, 'utf8')) as object,
    async stop() {
      child.stdin.end();
      await ended;
    },
  };
  for await (const line of createInterface({ input: child.stdout })) if (line.includes('"ready"')) return measured;
  throw new Error(`${name} ended before it was ready`);
}

const startWorker = (queue: QueueName, variables: NodeJS.ProcessEnv): Promise<Measured> =>
  startMeasured(queue, [join(repository, 'bin/campaign'), 'worker', '--queues', queue], {
    ...variables,
    CAMPAIGN_HOME: home,
    CAMPAIGN_POOL: POOL,
    CAMPAIGN_BASE_ID: BASE,
    CAMPAIGN_COMMANDS: JSON.stringify([targetOf(), targetOf('--hostile')]),
  });

/** An endpoint of a language model that answers in turn with 15 MB of words in many events, and 15 MB of JSON in one line. */
function startLanguageModel() {
  const values = '{},'.repeat(BODY_BYTES / 3);
  const event = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
  const bodies = [event(values.slice(0, 60_000)).repeat(BODY_BYTES / 60_000), `{"more":[${values}{}]}`];
  let answers = 0;
  const server = startLoopback((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(bodies[answers++ % bodies.length]);
  });
  return { server, answers: () => answers };
}

async function main(): Promise<void> {
  quiet();
  const env = await devServer();
  const policy = await startDialectServer();
  policy.complete = () => sleep(LATENCY_MS, completion({ role: 'assistant', content: 'hello' }));
  const { server, answers } = startLanguageModel();
  const model = await server;
  const variables = { TEMPORAL_ADDRESS: env.address, POLICY_SERVER_URL: policy.url };
  const measured: Record<string, Measured> = {};
  try {
    for (const queue of ['control', 'rollouts'] as const) measured[queue] = await startWorker(queue, variables);
    measured['idle'] = await startMeasured('idle', ['-e', `console.log('"ready"'); process.stdin.resume()`]);
    const queue = taskQueues.control(await (await openStore(home)).id());
    const sampling: Sampling = { temperature: 1, topP: 1, maxTokens: 64 };
    const begin = (name: string, { target, ...fields }: { target: object } & Record<string, unknown>) =>
      start(
        env,
        {
          campaign: campaignSchema.parse({
            name,
            target,
            analyst: { kind: 'llm', url: `${model.url}/v1`, model: 'm', repairs: 0 },
            synthesizer: { kind: 'llm', url: `${model.url}/v1`, model: 'm' },
            baseModel: { path: folder, id: BASE },
            policyServer: { kind: 'vllm', url: policy.url, model: 'base', contextTokens: 4096 },
            workers: { pool: POOL },
            training: { groupsPerStep: 4 },
            ...fields,
          }),
          until: 'selection',
          force: true,
        },
        queue,
      );
    const rollouts = (tasks: number, perTask: number, concurrency: number) => ({
      rollouts: { tasks, perTask, concurrency, sampling },
    });
    await begin('load', { target: targetOf(), ...rollouts(400, 8, CONCURRENCY) });
    await begin('hostile-model', { target: targetOf(), ...rollouts(16, 1, 16) });
    await sleep(WARM_UP_MS);
    for (const one of Object.values(measured)) one.reset();
    await begin('hostile-target', { target: targetOf('--hostile'), ...rollouts(16, 1, 1) });
    await sleep(MEASURED_MS);
    const delays = Object.fromEntries(Object.entries(measured).map(([name, one]) => [name, one.delays()]));
    console.log(
      JSON.stringify({
        bench: 'isolation',
        wantedP99: 100,
        rollouts: CONCURRENCY,
        answers: answers(),
        milliseconds: delays,
      }),
    );
  } finally {
    await Promise.all(Object.values(measured).map((one) => one.stop()));
    await Promise.all([policy.close(), model.close()]);
    await env.teardown();
    rmSync(folder, { recursive: true, force: true });
  }
}

void main();

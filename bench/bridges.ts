/**
 * What the engine costs over tau2-bench's bridges, beside any model: a policy and a user that answer at once.
 *
 *   node -r ./test/support/register.cjs bench/bridges.ts [--domain retail] [--processes 8] [--episodes 200] [--turns 2]
 *
 * Each episode is reset, has `turns` turns of the agent and the user, and is evaluated by tau2-bench. Prints one JSON object.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { openFolderStore } from '../src/artifacts/open-store';
import { openEnvironment } from '../src/environments/open';
import type { SimulatedUser } from '../src/partners/partners';
import { rollOut } from '../src/rollout/engine';
import { scriptedPolicy } from '../test/support/scripted-policy';

const { values } = parseArgs({
  options: {
    domain: { type: 'string', default: 'retail' },
    processes: { type: 'string', default: '8' },
    episodes: { type: 'string', default: '200' },
    turns: { type: 'string', default: '2' },
  },
});
const [processes, episodes, turns] = [values.processes, values.episodes, values.turns].map(Number) as [
  number,
  number,
  number,
];

const user: SimulatedUser = {
  id: 'bench',
  speak: async ({ messages }) => {
    const spoken = messages.filter(({ role }) => role === 'assistant').length;
    return { role: 'user', content: spoken < turns ? 'go on' : '###STOP###' };
  },
};

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'));
  const store = openFolderStore(folder);
  const spec = { kind: 'tau2', domains: [values.domain], processes };
  const environment = await openEnvironment(spec, { store, partners: { user } });
  const make = async (tasks: string[], attempts: number) =>
    rollOut({
      environment,
      client: scriptedPolicy(() => ({ role: 'assistant', content: 'yes' })),
      policy: { base: 'none', adapters: [] },
      tasks,
      attempts,
      sampling: { temperature: 0, topP: 1, maxTokens: 1 },
      seed: attempts,
      concurrency: 2 * processes,
      purpose: 'test',
      title: 'bench',
      maxAttempts: 1,
      store,
    });
  try {
    const tasks = (await environment.tasks('train')).map(({ id }) => id).slice(0, 20);
    await make(tasks, 1); // starts the processes
    const [cpuBefore, begun] = [process.cpuUsage(), performance.now()];
    const { summary: batch } = await make(tasks, Math.ceil(episodes / tasks.length));
    const seconds = (performance.now() - begun) / 1000;
    const { user: userTime, system } = process.cpuUsage(cpuBefore);
    const bridges = bridgesOfThisProcess();
    const result = {
      domain: values.domain,
      cores: cpus().length,
      processes: bridges.length,
      episodes: batch.scored,
      broken: batch.broken,
      seconds: round(seconds),
      episodesPerSecond: round(batch.scored / seconds),
      engineCpuMsPerEpisode: round((userTime + system) / 1000 / batch.scored),
      bridgeCpuMsPerEpisode: round(
        (1000 * sum(bridges.map((bridge) => bridge.cpuSeconds))) / (batch.scored + tasks.length),
      ),
      bridgeMiB: bridges.map(({ mib }) => mib).sort((a, b) => a - b),
    };
    console.log(JSON.stringify(result, null, 2));
  } finally {
    await environment.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const round = (value: number) => Math.round(value * 10) / 10;
const sum = (all: number[]) => all.reduce((a, b) => a + b, 0);

/** Resident memory and CPU time since their start, imports and data included. */
function bridgesOfThisProcess(): { mib: number; cpuSeconds: number }[] {
  const list = execFileSync('ps', ['-o', 'rss=,cputimes=,args=', '--ppid', String(process.pid)]).toString();
  return [...list.matchAll(/^ *(\d+) +(\d+) .*-m bridges\.tau2/gm)].map(([, rss, cpu]) => {
    return { mib: Math.round(Number(rss) / 1024), cpuSeconds: Number(cpu) };
  });
}

void main();

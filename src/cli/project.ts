/** Paths of the project, of the Python that runs the trainer, and of the home folder of campaigns; and writing into a folder. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { makeFolder } from '../store/durable-file';
import { projectRoot } from '../store/project-root';
import { note } from '../terminal';
import { messageOf, UserError } from './errors';

/** File that an installation of Python packages leaves when it is complete. `make install` writes it, too. */
export const INSTALLED = '.installed';

/** Folder of the Python environment that `campaign setup` makes: one for each list of packages, for all installations of the user. */
export function ownPythonFolder(): string {
  const data = process.env['XDG_DATA_HOME'] ?? join(homedir(), '.local/share');
  const lists = ['requirements.lock', 'torch.lock'].map((name) => readFileSync(join(projectRoot, 'trainer', name)));
  const digest = createHash('sha256').update(Buffer.concat(lists)).digest('hex');
  return join(data, 'campaign', `python-${digest.slice(0, 12)}`);
}

/** Python with the trainer's packages: $CAMPAIGN_PYTHON, else that of `make install` in a checkout, else that of `campaign setup`. */
export function pythonPath(): string {
  const named = process.env['CAMPAIGN_PYTHON'];
  if (named !== undefined) return named;
  const folder = [join(projectRoot, '.venv'), ownPythonFolder()].find((one) => existsSync(join(one, INSTALLED)));
  return join(folder ?? join(projectRoot, '.venv'), 'bin/python');
}

/** The Temporal CLI: on the PATH, else the one beside that Python; undefined if there is none. */
export function temporalPath(): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter).filter(Boolean), dirname(pythonPath())];
  return folders.map((folder) => join(folder, 'temporal')).find((file) => existsSync(file));
}

/** Returns true if a campaign of this name would share a folder with the home's own files. */
export const isReservedName = (name: string): boolean => ['artifacts', 'cache', 'logs', 'trainings'].includes(name);

/** Files of a home folder; campaigns lie beside them, each in a folder of its name. */
export function homeAt(folder: string) {
  const root = resolve(folder);
  return {
    root,
    /** Held by the one supervisor of this home. */
    lock: join(root, 'supervisor.lock'),
    /** Names the processes that the supervisor runs, for the next supervisor and for commands that look for its Temporal server. */
    state: join(root, 'run.json'),
    /** The secret of `campaign view`. */
    viewToken: join(root, 'view-token'),
    /** The programs, keys and files that its workers may use (run/allowed.ts). */
    allowed: join(root, 'allowed.json'),
    logs: join(root, 'logs'),
    temporalDatabase: join(root, 'temporal.db'),
  };
}
export type Home = ReturnType<typeof homeAt>;

/** Returns the content of a JSON file; undefined if there is no such file, or a damaged one. */
export function readJsonFile(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

/** Texts by the names of their files. @throws UserError */
export const writeInto = (folder: string, files: Record<string, string>): Promise<void> =>
  inWords(folder, async () => {
    await makeFolder(folder);
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  });

/** Makes the home, for this user alone. @throws UserError */
export const makeHome = (folder: string): Promise<void> =>
  inWords(folder, async () => {
    await makeFolder(folder);
    const { mode } = await stat(folder);
    if ((mode & 0o077) === 0) return;
    await chmod(folder, 0o700).catch(() => {
      note(`warning: other users can read ${folder}, and it is not yours to change; choose another with --home`);
    });
  });

const inWords = (folder: string, write: () => Promise<void>): Promise<void> =>
  write().catch((error: unknown) => {
    throw new UserError(
      'unwritable',
      'folder',
      `nothing can be written into ${folder}: ${messageOf(error)}; name another folder`,
    );
  });

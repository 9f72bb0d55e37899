/** Where files lie: the project itself, the Python that runs the trainer, the home folder of campaigns; and writing into a folder. */
import { existsSync, readFileSync } from 'node:fs';
import { chmod, stat, writeFile } from 'node:fs/promises';
import { delimiter, join, resolve } from 'node:path';
import { isCode, makeFolder } from '../store/durable-file';
import { projectRoot } from '../store/project-root';
import { note } from '../terminal';
import { messageOf, UserError } from './errors';

/** As package.json has it. */
export const version: string = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')).version;

/** Python with the trainer's packages: $CAMPAIGN_PYTHON, else the virtual environment that `make install` makes. */
export const pythonPath = (): string => process.env['CAMPAIGN_PYTHON'] ?? join(projectRoot, '.venv/bin/python');

/** The Temporal CLI: on the PATH, else the one in the virtual environment; undefined if there is none. */
export function temporalPath(): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter).filter(Boolean), join(projectRoot, '.venv/bin')];
  return folders.map((folder) => join(folder, 'temporal')).find((file) => existsSync(file));
}

export interface Home {
  root: string;
  /** Held by the one supervisor of this home. */
  lock: string;
  /** What the supervisor runs, for the next one and for commands that look for its Temporal server. */
  state: string;
  /** The secret of `campaign view`. */
  viewToken: string;
  /** File of the programs, keys and files that its workers may use (run/allowed.ts). */
  allowed: string;
  logs: string;
  temporalDatabase: string;
}

/** Whether a campaign of this name would share a folder with the home's own files. */
export const isReservedName = (name: string): boolean => ['artifacts', 'cache', 'logs', 'trainings'].includes(name);

/** Files of a home folder; campaigns lie beside them, each in a folder of its name. */
export function homeAt(folder: string): Home {
  const root = resolve(folder);
  return {
    root,
    lock: join(root, 'supervisor.lock'),
    state: join(root, 'run.json'),
    viewToken: join(root, 'view-token'),
    allowed: join(root, 'allowed.json'),
    logs: join(root, 'logs'),
    temporalDatabase: join(root, 'temporal.db'),
  };
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
    throw new UserError(`nothing can be written into ${folder}: ${whyUnwritten(error)}; name another folder`);
  });

/** Why something could not be written. */
export function whyUnwritten(error: unknown): string {
  if (isCode(error, 'EACCES', 'EPERM')) return 'you have no permission to write there';
  if (isCode(error, 'EROFS')) return 'its file system can only be read';
  if (isCode(error, 'ENOSPC', 'EDQUOT')) return 'its disk is full';
  if (isCode(error, 'ENOTDIR')) return 'a file is in the place of a folder';
  if (isCode(error, 'EISDIR')) return 'a folder is in the place of a file';
  return messageOf(error);
}

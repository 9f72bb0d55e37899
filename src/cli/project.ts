/** Where things lie: the project itself, the Python that runs the trainer, the home folder of campaigns. */
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';

/** The folder of package.json: the same seen from src/ and from dist/. */
export const projectRoot: string = findRoot(__dirname);

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
  logs: string;
  temporalDatabase: string;
}

/** Whether a campaign of this name would share a folder with the home's own files. */
export const isReservedName = (name: string): boolean => ['artifacts', 'logs', 'trainings'].includes(name);

/** Files of a home folder; campaigns lie beside them, each in a folder of its name. */
export function homeAt(folder: string): Home {
  const root = resolve(folder);
  return {
    root,
    lock: join(root, 'run.lock'),
    state: join(root, 'run.json'),
    logs: join(root, 'logs'),
    temporalDatabase: join(root, 'temporal.db'),
  };
}

function findRoot(from: string): string {
  for (let folder = from; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (folder === dirname(folder)) throw new Error(`no package.json above ${from}`);
  }
}

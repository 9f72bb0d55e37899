/** Harbor's task folders: each is a task of an agent's program, and its tests tell the reward. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { projectRoot } from '../../artifacts/project-root';
import { digest, sha256 } from '../../artifacts/hash';
import { OutsideFailure } from '../../domain/failures';
import { agentKind, commandOptions } from './kind';
import { type AgentTask, listOf, type TaskList } from './tasks';

/** Harbor's task folders, in a plain process: bridges/harbor/run.sh says how. */
export const harbor = agentKind({
  kind: 'harbor',
  options: {
    tasks: z.string().describe('Folder of task folders, each with a `task.toml`.'),
    ...commandOptions,
    testShare: z.number().gt(0).lt(1).default(0.3).describe('Share of the tasks that are `test`, by their names.'),
  },
  paths: ['tasks', 'folder'],
  runs: ['tasks', 'command', 'folder'],
  label: ({ tasks }) => tasks,
  expand: ({ tasks, command, folder, testShare }) => {
    const grader = ['sh', join(projectRoot, 'bridges', 'harbor', 'run.sh'), resolve(tasks)];
    return {
      name: 'harbor',
      command: [...grader, ...command],
      grader,
      folder,
      tasks: () => harborTasks(tasks, testShare),
    };
  },
});

/** Throws BadInput where there is none, or one needs more than a plain process. */
async function harborTasks(folder: string, testShare: number): Promise<TaskList> {
  const bad = (problem: string) => new OutsideFailure('BadInput', `target.tasks: ${folder}${problem}`);
  const names = (await readdir(folder)).filter((name) => existsSync(join(folder, name, 'task.toml')));
  if (names.length < 2) throw bad(` has ${names.length} folders with a task.toml; name one that holds two or more`);
  const test = new Set(
    [...names]
      .sort((a, b) => (digest(a) < digest(b) ? -1 : 1))
      .slice(0, Math.min(names.length - 1, Math.ceil(testShare * names.length))),
  );
  const read = async (name: string, ...path: string[]) => {
    const file = join(folder, name, ...path);
    return existsSync(file) ? readFile(file, 'utf8') : '';
  };
  const contents: [file: string, sha256: string][] = [];
  const tasks: AgentTask[] = [];
  for (const name of names.sort()) {
    const [config, dockerfile, script] = await Promise.all([
      read(name, 'task.toml'),
      read(name, 'environment', 'Dockerfile'),
      read(name, 'tests', 'test.sh'),
    ]);
    const needed = containerNeeded(config, dockerfile);
    if (needed) {
      const fix = 'take it out, or play the folder with verifiers in a container (docs/targets.md)';
      throw bad(`/${name}: ${needed}, which a plain process can't do; ${fix}`);
    }
    if (script === '') throw bad(`/${name}: tests/test.sh is missing; add it, or take the folder out`);
    contents.push(...(await contentsOf(folder, name)));
    const split = test.has(name) ? 'test' : 'train';
    tasks.push({ id: name, split, prompt: await read(name, 'instruction.md') });
  }
  return listOf(tasks, contents);
}

/** A reward hangs on every file of a task: on what the tests read as much as on the script. */
async function contentsOf(folder: string, name: string): Promise<[file: string, sha256: string][]> {
  const files = (await readdir(join(folder, name), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  return Promise.all(files.map(async (file) => [relative(folder, file), sha256(await readFile(file))]));
}

/** Of a Dockerfile, what is left out without harm, and what run.sh does. */
const PLAIN =
  /^(FROM|WORKDIR \/\S+$|COPY [^-\s]\S* \S+$|RUN mkdir -p( \/logs\/\S+)+$|CMD|ENTRYPOINT|LABEL|EXPOSE|#|$)/i;

function containerNeeded(config: string, dockerfile: string): string | undefined {
  const setting = /^\s*(docker_image\s*=|\[\[steps\]\]|\[(?:environment|verifier)\.env\](?=\s*\w))/m.exec(config)?.[1];
  if (setting) return `task.toml has ${setting}`;
  const line = dockerfile.split('\n').find((one) => !PLAIN.test(one.trim()));
  return line === undefined ? undefined : `its Dockerfile has ${line.trim().slice(0, 80)}`;
}

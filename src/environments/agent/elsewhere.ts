/**
 * Environments of others that own their loop and ask a model in OpenAI's form: an agent's program plays each. Nothing of them is known here but how
 * their tasks are listed.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { projectRoot } from '../../artifacts/given';
import { digest } from '../../artifacts/hash';
import { OutsideFailure } from '../../domain/failures';
import { taskCounts } from '../in-process';
import { agentKind, commandOptions } from './kind';
import type { AgentTask, TaskList } from './tasks';

const listOf = (tasks: AgentTask[], ...made: unknown[]): TaskList => ({
  tasks: new Map(tasks.map((task) => [task.id, task])),
  version: digest([tasks, made]),
});

const configSchema = z.record(z.string(), z.json());

/** Verifiers' own rollout, in a process of its Python. */
export const verifiers = agentKind({
  kind: 'verifiers',
  options: {
    environment: z.string().describe('Id of an installed taskset, as `vf-eval` takes it.'),
    venv: z.string().describe('Folder of the Python environment that verifiers and the taskset are installed in.'),
    arguments: configSchema.default({}).describe("Verifiers' `env` config, but for the taskset's id."),
    testArguments: configSchema
      .optional()
      .describe(
        'Taken for `test` in place of `arguments`; without it, `test` has the tasks that follow those of `train`.',
      ),
    ...taskCounts,
    rewards: z.tuple([z.number(), z.number()]).default([0, 1]).describe('The least and the most reward that there is.'),
  },
  paths: ['venv'],
  label: ({ environment }) => environment,
  expand: ({ environment, venv, arguments: given, testArguments, trainTasks, testTasks, rewards }, { maxSteps }) => {
    const env = (config: z.infer<typeof configSchema>) => ({
      ...config,
      taskset: { ...(config['taskset'] as object | undefined), id: environment },
    });
    const tasks = (split: AgentTask['split'], count: number, from: number, config: z.infer<typeof configSchema>) =>
      Array.from({ length: count }, (_, n) => ({
        id: `${split}-${n}`,
        split,
        index: from + n,
        maxSteps,
        rewards,
        env: env(config),
      }));
    const all = [
      ...tasks('train', trainTasks, 0, given),
      ...tasks('test', testTasks, testArguments ? 0 : trainTasks, testArguments ?? given),
    ];
    return {
      name: environment,
      command: [join(venv, 'bin', 'python'), join(projectRoot, 'bridges', 'verifiers', 'agent.py')],
      folder: '.',
      tasks: async () => listOf(all),
    };
  },
});

/** Harbor's task folders, in a plain process: bridges/harbor/run.sh says how. */
export const harbor = agentKind({
  kind: 'harbor',
  options: {
    tasks: z.string().describe('Folder of task folders, each with a `task.toml`.'),
    ...commandOptions,
    testShare: z.number().gt(0).lt(1).default(0.3).describe('Share of the tasks that are `test`, by their names.'),
  },
  paths: ['tasks', 'folder'],
  label: ({ tasks }) => tasks,
  expand: ({ tasks, command, folder, testShare }) => ({
    name: 'harbor',
    command: ['sh', join(projectRoot, 'bridges', 'harbor', 'run.sh'), resolve(tasks), ...command],
    folder,
    tasks: () => harborTasks(tasks, testShare),
  }),
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
  const files: string[] = [];
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
    files.push(config, dockerfile, script);
    const split = test.has(name) ? 'test' : 'train';
    tasks.push({ id: name, split, prompt: await read(name, 'instruction.md') });
  }
  return listOf(tasks, files);
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

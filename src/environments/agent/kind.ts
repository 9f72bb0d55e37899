/**
 * Runs any program with an OpenAI client as the agent of a campaign. The program is started once for each task, and each of its requests is a turn of the
 * rollout.
 */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, resolve } from 'node:path';
import { z } from 'zod';
import { digest, sha256 } from '../../store/hash';
import { silenceField, variableName } from '../../domain/endpoints';
import type { Environment, EnvironmentDescription, Episode } from '../../domain/environment';
import { badInput } from '../../domain/failures';
import { defineKind } from '../../domain/kinds';
import { checkAllowed, type EnvironmentKind } from '../kinds';
import { checkAgent } from './check';
import { openEndpoint } from './endpoint';
import { AGENT_FOLDER, type AgentProgram, beginAgent } from './episode';
import { readTasks, type TaskList } from './tasks';

const commandSchema = z.array(z.string()).min(1);
/** Options of the agent's program. */
const commandOptions = {
  command: commandSchema.describe('Program and arguments, relative to `folder`.'),
  folder: z.string().default('.').describe('Folder of these files.'),
};
/** Options of all kinds of agents. */
export const agentOptions = {
  version: z.string().default('1').describe('Change it when the program changes.'),
  readOnlyTools: z.array(z.string()).default([]).describe('Tools that change nothing.'),
  maxSteps: z.number().int().positive().default(50).describe('Most requests per rollout.'),
  silenceSeconds: silenceField.default(600).describe('Seconds of silence until a kill.'),
  passEnv: z.array(variableName).optional().describe('Environment variables passed to it.'),
};

interface AgentOptions extends AgentProgram {
  version: string;
  /** Its name in reports. */
  name?: string | undefined;
  folder: string;
  /** A file of JSON lines, or a function that lists the tasks. */
  tasks: string | (() => Promise<TaskList>);
}

/** Defines a kind whose environments are agents' programs: `expand` returns the program and the tasks. */
export function agentKind<Shape extends z.ZodRawShape>(o: {
  kind: string;
  options: Shape;
  paths: readonly (keyof Shape & string)[];
  runs: readonly (keyof Shape & string)[];
  expand(
    options: z.infer<z.ZodObject<Shape>>,
    limits: { maxSteps: number },
  ): Omit<AgentOptions, keyof typeof agentOptions>;
}): EnvironmentKind {
  const { expand, options, runs, ...named } = o;
  const common = z.object(agentOptions);
  const openRead = (read: z.infer<z.ZodObject<Shape>>) => {
    const limits = common.parse(read);
    return openAgent({ ...limits, ...expand(read, limits) });
  };
  const kind = defineKind({
    ...named,
    version: '1',
    options: { ...options, ...agentOptions } as Shape,
    open: (read) => {
      checkAllowed(o.kind, read, runs);
      return openRead(read);
    },
  });
  return {
    ...kind,
    runs,
    contents: async (spec) => {
      const read = kind.read(spec);
      const { command, grader, folder, tasks } = expand(read, common.parse(read));
      return digest([filesOf([...command, ...(grader ?? [])], folder), (await tasksIn(tasks)).version]);
    },
    check: (spec, say, run = {}) => {
      const read = kind.read(spec);
      const { silenceSeconds } = common.parse(read);
      return checkAgent({ environment: openRead(read), silenceSeconds, say, ...run });
    },
  };
}

export const agent = agentKind({
  kind: 'agent',
  options: {
    name: z.string().min(1).optional().describe("Name; default: the program's file."),
    ...commandOptions,
    tasks: z.string().describe('JSON lines (docs/agents.md).'),
    grader: commandSchema.optional().describe('Program that prints the reward.'),
  },
  paths: ['tasks', 'folder'],
  runs: ['command', 'folder', 'tasks', 'grader'],
  expand: ({ name, command, folder, tasks, grader }) => ({ name, command, folder, tasks, grader }),
});

const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\\.?';
/** Parts of a prompt that differ in every run: dates, times of day, ids and the working folder. */
const OF_THE_RUN = new RegExp(
  [
    '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}',
    `${AGENT_FOLDER}\\w+`,
    '\\d{4}-\\d\\d-\\d\\d(?:[T ]\\d\\d:\\d\\d(?::\\d\\d(?:\\.\\d+)?)?)?',
    '\\d{1,2}:\\d\\d(?::\\d\\d(?:\\.\\d+)?)?(?: ?[ap]m)?',
    '\\d{1,2}[/.]\\d{1,2}[/.]\\d{4}',
    `${MONTH} \\d{1,2},? \\d{4}`,
    `\\d{1,2}\\.? ${MONTH},? \\d{4}`,
    '(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day',
  ].join('|'),
  'gi',
);

export function openAgent(o: AgentOptions): Environment {
  const { folder, maxSteps } = o;
  const command = o.command.map((word) => located(word, folder));
  const grader = o.grader?.map((word) => located(word, folder));
  const program = { ...o, command, grader };
  const endpoint = openEndpoint();
  let read: Promise<TaskList> | undefined;
  let described: Promise<EnvironmentDescription> | undefined;
  const tasksOf = () => {
    read ??= tasksIn(o.tasks);
    read.catch(() => (read = undefined));
    return read;
  };

  async function reset({ id, seed }: { id: string; seed: number }, signal?: AbortSignal): Promise<Episode> {
    const task = (await tasksOf()).tasks.get(id);
    if (!task) throw badInput(`target.tasks: there is no task "${id}"`);
    return beginAgent({ program, endpoint, task, seed, signal });
  }

  async function itself() {
    const { version } = await tasksOf();
    const files = filesOf([...command, ...(grader ?? [])], folder);
    const asked = [o.command, o.grader ?? null, o.readOnlyTools, files, version];
    const name = o.name ?? fileName(o.command, folder);
    return { name, version: `${o.version} ${digest(asked).slice(0, 12)}`, maxSteps };
  }

  async function lookAtTask(task: { id: string; seed: number }, signal?: AbortSignal): Promise<object> {
    const { start, close } = await reset(task, signal);
    await close();
    const { messages, tools } = start;
    return { messages: JSON.stringify(messages).replace(OF_THE_RUN, '...'), tools };
  }

  /** Takes system prompt and tools from the program's first request at its first task. */
  async function describe(): Promise<EnvironmentDescription> {
    const { tasks } = await tasksOf();
    const first = [...tasks.values()].find(({ split }) => split === 'train')!;
    const episode = await reset({ id: first.id, seed: 0 });
    await episode.close();
    const { messages, tools } = episode.start;
    return {
      ...(await itself()),
      policy: messages.flatMap(({ role, content }) => (role === 'system' ? [content] : [])).join('\n\n'),
      tools,
      hasReference: false,
    };
  }

  return {
    appearance: { itself, task: lookAtTask },
    async describe() {
      described ??= describe();
      described.catch(() => (described = undefined));
      return described;
    },
    async tasks(split) {
      const { tasks } = await tasksOf();
      return [...tasks.values()].flatMap(({ id, groups, prompt, ...task }) =>
        task.split === split
          ? [{ id, split, ...(groups && { groups }), ...(typeof prompt === 'string' && { text: prompt }) }]
          : [],
      );
    },
    reset,
    close: () => endpoint.close(),
  };
}

const isFile = (path: string): boolean => existsSync(path) && statSync(path).isFile();

/** A file is named by its whole path, since the program runs in another folder. */
function located(word: string, folder: string): string {
  const path = resolve(folder, word);
  return isFile(path) ? path : word;
}

const fileName = (command: readonly string[], folder: string): string =>
  basename(command.find((word) => isFile(resolve(folder, word))) ?? command[0]!);

const tasksIn = (tasks: AgentOptions['tasks']): Promise<TaskList> =>
  typeof tasks === 'string' ? readTasks(tasks) : tasks();

/** Hashes of the files among the words. */
const filesOf = (words: readonly string[], folder: string): string[] =>
  words
    .map((word) => located(word, folder))
    .filter(isFile)
    .map((file) => sha256(readFileSync(file)));

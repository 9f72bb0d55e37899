/**
 * Environments that run in process: tasks that are drawn from parameters, and episodes that answer by rules. An episode
 * begins with the policy and the user's first words, and `maxSteps` messages of the agent end it.
 */
import { z } from 'zod';
import type {
  Environment,
  EnvironmentDescription,
  Episode,
  Evaluation,
  Split,
  StepResult,
  StopReason,
} from '../domain/environment';
import type { AssistantMessage } from '../domain/messages';

const MOST_TASKS = 10_000;

/** How many tasks each split has: larger counts add tasks after those that are there. */
export const taskCounts = {
  trainTasks: z.number().int().min(2).max(MOST_TASKS).default(400).describe('Tasks of the train split.'),
  testTasks: z.number().int().min(1).max(MOST_TASKS).default(200).describe('Tasks of the test split.'),
};
interface TaskCounts {
  trainTasks: number;
  testTasks: number;
}

/** One episode's own state and rules. */
interface Play {
  firstMessage: string;
  answer(message: AssistantMessage): StepResult;
  evaluate(reason: StopReason): Evaluation;
}

interface Definition<Task, Parameters> {
  /** In a campaign file's reference. */
  summary: string;
  description: Omit<EnvironmentDescription, 'version'>;
  /** Changes with anything that changes tasks or rewards. */
  version: string;
  /** What a campaign file may set. */
  parameters: z.ZodObject & z.ZodType<Parameters>;
  /** `<split>-0`, `<split>-1`, ...: the same ones each time, the first of more. */
  draw(o: { split: Split; count: number; parameters: Parameters }): Task[];
  groupsOf?: (task: Task) => string[];
  begin(task: Task): Play;
}

export function inProcess<Task extends { id: string }, Parameters extends TaskCounts>(
  definition: Definition<Task, Parameters>,
) {
  const { description, version, parameters: schema, draw, groupsOf, begin } = definition;
  const { name, policy, tools, maxSteps, ...more } = description;
  const defaults = schema.parse({}) as Parameters;
  const drawn = new Map<string, ReadonlyMap<string, Task>>();

  /** With what differs: an environment that was made for other tasks may hold the text of one of these. */
  function versionOf(parameters: Parameters): string {
    const names = Object.keys(defaults) as (keyof Parameters)[];
    const changed = names.filter((field) => parameters[field] !== defaults[field]);
    const values = changed.map((field) => `${String(field)} ${parameters[field]}`).join(', ');
    return values === '' ? version : `${version} (${values})`;
  }

  /** The tasks of both splits by id; those of the same parameters are drawn once. */
  function tasksOf(given: Partial<Parameters> = {}): ReadonlyMap<string, Task> {
    const parameters = schema.parse(given) as Parameters;
    const key = versionOf(parameters);
    const { trainTasks, testTasks } = parameters;
    const tasks =
      drawn.get(key) ??
      new Map(
        [
          ...draw({ split: 'train', count: trainTasks, parameters }),
          ...draw({ split: 'test', count: testTasks, parameters }),
        ].map((task) => [task.id, task]),
      );
    drawn.set(key, tasks);
    return tasks;
  }

  function taskOf(id: string, given?: Partial<Parameters>): Task {
    const task = tasksOf(given).get(id);
    if (!task) throw new Error(`${name}: unknown task "${id}": use an id from tasks()`);
    return task;
  }

  function openEpisode(task: Task): Episode {
    const { firstMessage, answer, evaluate } = begin(task);
    let steps = 0;
    return {
      start: {
        messages: [
          { role: 'system', content: policy },
          { role: 'user', content: firstMessage },
        ],
        tools,
        maxSteps,
      },
      async step(message) {
        const result = answer(message);
        steps += 1;
        return result.done || steps < maxSteps ? result : { ...result, done: true, stopReason: 'max_steps' };
      },
      evaluate: async (reason) => evaluate(reason),
      close: async () => undefined,
    };
  }

  /** Parameters that are not given have their defaults. Throws a ZodError that names a wrong one. */
  function create(given: Partial<Parameters> = {}): Environment {
    const parameters = schema.parse(given) as Parameters;
    const counts = { train: parameters.trainTasks, test: parameters.testTasks };
    return {
      describe: async () => ({ name, version: versionOf(parameters), policy, tools, maxSteps, ...more }),
      tasks: async (split) =>
        Array.from({ length: counts[split] }, (_, n) => {
          const id = `${split}-${n}`;
          return { id, split, ...(groupsOf && { groups: groupsOf(taskOf(id, parameters)) }) };
        }),
      reset: async ({ id }) => openEpisode(taskOf(id, parameters)),
      close: async () => undefined,
    };
  }

  return { name, summary: definition.summary, parameters: schema, tasksOf, taskOf, openEpisode, create };
}

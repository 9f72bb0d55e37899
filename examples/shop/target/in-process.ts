/**
 * Environments that run in process: tasks that are drawn from parameters, the same ones on every machine, and episodes that answer by rules. An episode
 * begins with the policy and the user's first words, and `maxSteps` messages of the agent end it.
 */
import {
  type AssistantMessage,
  type Environment,
  type EnvironmentDescription,
  type Episode,
  type Evaluation,
  hash,
  type Split,
  type StepResult,
  type StopReason,
  z,
} from 'campaign/plugin';

export interface Random {
  next(): number;
  below(n: number): number;
  pick<T>(values: readonly T[]): T;
  /** `n` different values in random order. */
  sample<T>(values: readonly T[], n: number): T[];
  shuffle<T>(values: readonly T[]): T[];
  chance(probability: number): boolean;
}

/** A text's FNV-1a with a final mix, as an unsigned integer. */
export function mixedHash(text: string): number {
  const h = hash(text);
  const mixed = Math.imul(h ^ (h >>> 16), 0x45d9f3b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

export function random(seed: string): Random {
  let state = mixedHash(seed);
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n: number): number => Math.floor(next() * n);
  const shuffle = <T>(values: readonly T[]): T[] => {
    const out = [...values];
    for (let i = out.length - 1; i > 0; i--) {
      const j = below(i + 1);
      [out[i], out[j]] = [out[j] as T, out[i] as T];
    }
    return out;
  };
  return {
    next,
    below,
    shuffle,
    pick: <T>(values: readonly T[]): T => {
      if (values.length === 0) throw new Error('pick: no values');
      return values[below(values.length)] as T;
    },
    sample: (values, n) => shuffle(values).slice(0, n),
    chance: (probability) => next() < probability,
  };
}

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
  begin(task: Task): Play;
}

export function inProcess<Task extends { id: string }, Parameters extends TaskCounts>(
  definition: Definition<Task, Parameters>,
) {
  const { description, version, parameters: schema, draw, begin } = definition;
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
      tasks: async (split) => Array.from({ length: counts[split] }, (_, n) => ({ id: `${split}-${n}`, split })),
      reset: async ({ id }) => openEpisode(taskOf(id, parameters)),
      close: async () => undefined,
    };
  }

  return { name, summary: definition.summary, parameters: schema, tasksOf, taskOf, openEpisode, create };
}

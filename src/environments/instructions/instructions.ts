/**
 * The target environment `instructions`: short texts with instructions that a program can verify. The reward is 1 if
 * every message of the user was answered, each answer is an answer, and the last one keeps all instructions; else 0.
 */
import { z } from 'zod';
import type {
  Environment,
  Episode,
  Evaluation,
  Message,
  Split,
  StepResult,
  StopReason,
} from '../../domain/environment';
import type { AssistantMessage } from '../../domain/messages';
import { taskCounts } from '../shop/tasks';
import { answerChecks, isReworded } from './answer';
import { kindNamed, merged } from './combinations';
import { drawTasks, groupOf, type InstructionTask, type Turn } from './tasks';

/** Changes with anything that changes tasks or rewards. */
const VERSION = '1';
/** What a campaign file may set. Larger counts add tasks after those that are there. */
export const instructionsParameters = taskCounts;
const USUAL = z.object(instructionsParameters).parse({});
const POLICY = "Follow the user's instructions exactly.";
/** Calls of tools that are not there are steps too. */
const MAX_STEPS = 4;
const NO_TOOLS = 'error : there are no tools ; answer with text';

type Counts = typeof USUAL;

/** With what differs: an environment that was made for fewer test tasks may hold the text of one of the others. */
function versionOf(counts: Counts): string {
  const names = Object.keys(USUAL) as (keyof Counts)[];
  const changed = names.flatMap((name) => (counts[name] === USUAL[name] ? [] : [`${name} ${counts[name]}`]));
  return changed.length === 0 ? VERSION : `${VERSION} (${changed.join(', ')})`;
}

export function openEpisode(task: InstructionTask): Episode {
  const answers: string[] = [];
  let steps = 0;

  const answer = ({ content, toolCalls = [] }: AssistantMessage): StepResult => {
    if (toolCalls.length > 0)
      return {
        messages: toolCalls.map(({ id }) => ({ role: 'tool', toolCallId: id, content: NO_TOOLS })),
        done: false,
      };
    answers.push(content);
    const next = task.turns[answers.length];
    if (!next) return { messages: [], done: true, stopReason: 'agent_stop' };
    return { messages: [{ role: 'user', content: next.text }], done: false };
  };

  return {
    start: {
      messages: [
        { role: 'system', content: POLICY },
        { role: 'user', content: task.turns[0]?.text ?? '' },
      ] satisfies Message[],
      tools: [],
      maxSteps: MAX_STEPS,
    },
    step: async (message) => {
      const result = answer(message);
      steps += 1;
      return result.done || steps < MAX_STEPS ? result : { ...result, done: true, stopReason: 'max_steps' };
    },
    evaluate: async (reason: StopReason) => evaluate({ task, answers, reason }),
    close: async () => {},
  };
}

export function createInstructions(given: Partial<Counts> = {}): Environment {
  const counts = { ...USUAL, ...given };
  const { trainTasks, testTasks } = counts;
  const drawn: Partial<Record<Split, Map<string, InstructionTask>>> = {};
  const tasksOf = (split: Split): Map<string, InstructionTask> =>
    (drawn[split] ??= new Map(
      drawTasks(split, split === 'train' ? trainTasks : testTasks).map((task) => [task.id, task] as const),
    ));
  return {
    describe: async () => ({
      name: 'instructions',
      version: versionOf(counts),
      policy: POLICY,
      tools: [],
      maxSteps: MAX_STEPS,
      hasReference: false,
    }),
    tasks: async (split) =>
      [...tasksOf(split).values()].map((task) => ({ id: task.id, split, groups: [groupOf(task)] })),
    reset: async ({ id }) => {
      const task = tasksOf('train').get(id) ?? tasksOf('test').get(id);
      if (!task) throw new Error(`instructions: unknown task "${id}": use an id from tasks()`);
      return openEpisode(task);
    },
    close: async () => {},
  };
}

interface Answered {
  task: InstructionTask;
  answers: string[];
  reason: StopReason;
}

/** What is asked for by the user's first `count` messages. */
const askedBy = ({ topic, turns }: InstructionTask, count: number) => {
  const so = turns.slice(0, count);
  const instructions = so.flatMap((turn: Turn) => turn.instructions);
  return {
    instructions,
    asked: { topic, demands: merged(instructions.map((i) => i.demands)), said: so.map((t) => t.text) },
  };
};

export function evaluate({ task, answers, reason }: Answered): Evaluation {
  const last = answers.at(-1) ?? '';
  const { instructions, asked } = askedBy(task, task.turns.length);
  const kept = Object.fromEntries(
    instructions.map(({ kind, demands }) => [kind, Number(kindNamed(kind).holds(last, demands))]),
  );
  const before = answers.slice(0, -1).map((answer, n) => answerChecks(answer, askedBy(task, n + 1).asked));
  const breakdown: Record<string, number> = {
    ...kept,
    ...answerChecks(last, asked),
    answered: Number(reason === 'agent_stop' && answers.length === task.turns.length),
    ...(task.turns.length > 1 && { first_answer: Number(before.length > 0 && before.every(all)) }),
    ...(task.turns.at(-1)?.reworded && { reworded: Number(isReworded(last, answers.at(-2) ?? '')) }),
  };
  return { reward: Number(all(breakdown)), breakdown };
}

const all = (checks: Record<string, number>): boolean => Object.values(checks).every((value) => value === 1);

/**
 * The target environment `instructions`: short texts with instructions that a program can verify. Invariant: an episode is a pure function of
 * the task and of the agent's messages; there are no tools, the seed is not used, and episodes share nothing.
 */
import { z } from 'zod';
import type { Environment, Episode, Message, Split, StepResult, StopReason } from '../../domain/environment';
import type { AssistantMessage } from '../../domain/messages';
import { evaluate } from './reward';
import { taskCounts } from '../shop/parameters';
import { drawTasks, groupOf, type InstructionTask } from './tasks';

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

/**
 * The target environment `instructions`: short texts with instructions that a program can verify. The reward is 1 if
 * every message of the user was answered, each answer is an answer, and the last one keeps all instructions; else 0.
 */
import { z } from 'zod';
import type { Evaluation, StepResult, StopReason } from '../../domain/environment';
import type { AssistantMessage } from '../../domain/messages';
import { inProcess, taskCounts } from '../in-process';
import { answerChecks, isReworded } from './answer';
import { kindNamed, merged } from './kinds';
import { drawTasks, groupOf, type InstructionTask } from './tasks';

const NO_TOOLS = 'error : there are no tools ; answer with text';

export const instructions = inProcess({
  summary: 'Short texts that must follow instructions.',
  description: {
    name: 'instructions',
    policy: "Follow the user's instructions exactly.",
    tools: [],
    // Calls of tools that are not there are steps too.
    maxSteps: 4,
    hasReference: false,
  },
  version: '1',
  parameters: z.strictObject(taskCounts),
  draw: ({ split, count }) => drawTasks(split, count),
  groupsOf: (task) => [groupOf(task)],
  begin,
});
export const { create: createInstructions, openEpisode } = instructions;

function begin(task: InstructionTask) {
  const [first, ...later] = task.turns;
  const answers: string[] = [];
  return {
    firstMessage: first?.text ?? '',
    answer({ content, toolCalls = [] }: AssistantMessage): StepResult {
      if (toolCalls.length > 0)
        return {
          messages: toolCalls.map(({ id }) => ({ role: 'tool', toolCallId: id, content: NO_TOOLS })),
          done: false,
        };
      const next = later[answers.length];
      answers.push(content);
      if (!next) return { messages: [], done: true, stopReason: 'agent_stop' };
      return { messages: [{ role: 'user', content: next.text }], done: false };
    },
    evaluate: (reason: StopReason) => evaluate({ task, answers, reason }),
  };
}

/** What is asked for by the user's first `count` messages. */
function askedBy({ topic, turns }: InstructionTask, count: number) {
  const messages = turns.slice(0, count);
  const all = messages.flatMap(({ instructions: own }) => own);
  return {
    all,
    asked: { topic, demands: merged(all.map(({ demands }) => demands)), said: messages.map((m) => m.text) },
  };
}

interface Answered {
  task: InstructionTask;
  answers: readonly string[];
  reason: StopReason;
}

function evaluate({ task, answers, reason }: Answered): Evaluation {
  const [before = '', last = ''] = [answers.at(-2), answers.at(-1)];
  const { all, asked } = askedBy(task, task.turns.length);
  const earlier = answers.slice(0, -1).map((answer, n) => answerChecks(answer, askedBy(task, n + 1).asked));
  const checks: Record<string, boolean> = {
    ...Object.fromEntries(all.map(({ kind, demands }) => [kind, kindNamed(kind).holds(last, demands)])),
    ...answerChecks(last, asked),
    answered: reason === 'agent_stop' && answers.length === task.turns.length,
  };
  if (task.turns.length > 1) checks.first_answer = earlier.length > 0 && earlier.every(isKept);
  if (task.turns.at(-1)?.reworded) checks.reworded = isReworded(last, before);
  const breakdown = Object.fromEntries(Object.entries(checks).map(([name, holds]) => [name, Number(holds)]));
  return { reward: Number(isKept(checks)), breakdown };
}

const isKept = (checks: Record<string, boolean>): boolean => Object.values(checks).every(Boolean);

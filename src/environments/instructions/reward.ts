/**
 * The all-or-nothing reward. Invariant: 1 exactly if the user's every message was answered, each answer is an answer, and the last one keeps all
 * instructions that were given; the breakdown says which of it holds, by kind.
 */
import type { Evaluation, StopReason } from '../../domain/environment';
import { answerChecks, isReworded } from './answer';
import { kindNamed, merged } from './kinds';
import type { InstructionTask, Turn } from './tasks';

interface Answered {
  task: InstructionTask;
  /** To each of the user's messages. */
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

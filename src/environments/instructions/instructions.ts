/**
 * The target environment `instructions`: short texts with instructions that a program can verify. The reward is 1 if every message of the user was
 * answered, each answer is an answer, and the last one keeps all instructions; else 0. What keeps them all by saying next to nothing, by repeating
 * itself or by handing the request back is no answer.
 */
import { z } from 'zod';
import type { Evaluation, StepResult, StopReason } from '../../domain/environment';
import type { AssistantMessage } from '../../domain/messages';
import { inProcess, taskCounts } from '../in-process';
import { kindNamed, merged, type Demands } from './kinds';
import { drawTasks, groupOf, type InstructionTask } from './tasks';
import { linesOf, plainWords, runsOf, sentencesOf, topicalStems, type Topic } from './topics';

const LEAST_WORDS = 10;
const WORDS_PER = { sentence: 5, item: 3 };
/** A shorter answer may be without function words, and be on its topic by one word that belongs to it. */
const LONG = 12;
/** Of the runs of three words: ordinary prose has more than nine in ten different. */
const LEAST_DIFFERENT = 0.8;
/** A line or sentence of so many words may not come twice. */
const REPEATABLE = 4;
/** Of the runs of three words, those that the user has said. */
const MOST_ECHOED = 0.4;
/** English prose has four in ten; a list of keywords has none. */
const LEAST_FUNCTION = 0.15;
/** Of the runs of three words, those of the answer that is to be put in other words. */
const MOST_KEPT = 0.6;

const FUNCTION = new Set(
  (
    'a an the this that these those i you he she it we they me him her us them my your his its our their who which what how when where ' +
    'is are was were be been am do does did has have had can could will would may might must should not no ' +
    'and or but so if as than because while of to in on at by for with from about into over after before up out all some any many much other others another few both each ' +
    "more most very too there here it's don't they're i'm you're can't"
  ).split(' '),
);

const isList = ({ bullets, numbered }: Demands): boolean => bullets !== undefined || numbered !== undefined;

export function leastWords({ most = Infinity, sentences = Infinity, bullets, numbered }: Demands): number {
  const items = bullets ?? numbered ?? Infinity;
  return Math.min(LEAST_WORDS, Math.ceil(most / 2), sentences * WORDS_PER.sentence, items * WORDS_PER.item);
}

function differs(text: string, words: readonly string[]): boolean {
  const runs = runsOf(words, 3);
  const parts = [linesOf(text), sentencesOf(text)].map((all) =>
    all.map((part) => plainWords(part)).flatMap((part) => (part.length < REPEATABLE ? [] : [part.join(' ')])),
  );
  const isTwice = parts.some((all) => new Set(all).size < all.length);
  return !isTwice && (runs.length === 0 || new Set(runs).size >= LEAST_DIFFERENT * runs.length);
}

/** It names its topic, or has two words that belong to it. */
function isAbout(words: readonly string[], topic: Topic): boolean {
  const found = topicalStems(words, topic);
  return found.own + found.related >= (found.own > 0 || words.length < LONG ? 1 : 2);
}

/** The share of a text's runs of three words that others have as well. */
function shared(words: readonly string[], others: readonly string[]): number {
  const runs = runsOf(words, 3);
  const known = new Set(runsOf(others, 3));
  return runs.length === 0 ? 0 : runs.filter((run) => known.has(run)).length / runs.length;
}

/** Whether it is a rewriting of `before` rather than the same again. */
const isReworded = (text: string, before: string): boolean => shared(plainWords(text), plainWords(before)) <= MOST_KEPT;

interface Asked {
  topic: Topic;
  demands: Demands;
  said: string[];
}

/** True where the text is an answer in this respect. */
function answerChecks(text: string, { topic, demands, said }: Asked): Record<string, boolean> {
  const words = plainWords(text);
  const isLong = words.length >= LONG;
  const functional = words.filter((word) => FUNCTION.has(word)).length;
  return {
    long_enough: words.length >= leastWords(demands),
    on_topic: isAbout(words, topic),
    no_repetition: differs(text, words),
    own_words: shared(words, plainWords(said.join(' '))) <= MOST_ECHOED,
    prose: !isLong || isList(demands) || functional >= LEAST_FUNCTION * words.length,
  };
}

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

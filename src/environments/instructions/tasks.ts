/**
 * The procedural task generator: a task is a function of its id, no two have the same first message, and the splits
 * have different topics and the same phrasings.
 */
import type { Split } from '../../domain/environment';
import { random, type Random } from '../in-process';
import { type Demands, goTogether, kindNamed, KINDS } from './kinds';
import { TOPICS, type Topic } from './topics';

interface Instruction {
  kind: string;
  demands: Demands;
}

/** What the user says once, and what it asks for beyond what was asked before. */
interface Turn {
  text: string;
  instructions: Instruction[];
  /** The same again in other words is asked for. */
  reworded?: boolean;
}

export interface InstructionTask {
  id: string;
  topic: Topic;
  turns: Turn[];
}

/** Rows of the report's tables, and how many of a hundred tasks each has. */
export const GROUPS = [
  { name: '1 instruction', weight: 60, instructions: 1 },
  { name: '2 instructions', weight: 20, instructions: 2 },
  { name: '3 instructions', weight: 7, instructions: 3 },
  { name: '4 instructions', weight: 3, instructions: 4 },
  { name: 'two turns', weight: 10, instructions: 0 },
];

const REQUESTS = [
  'Write about {topic}.',
  'Write something about {topic}.',
  'Write a short text about {topic}.',
  'Tell me about {topic}.',
  'I would like to read something about {topic}.',
  'Please write about {topic}.',
];
const ADDITIONS = [
  'Good. Now write it again with one more thing: {instruction} Keep to what I asked before.',
  'Please change it. {instruction} All that I asked before still holds.',
  'Thank you. One thing more, beside what I asked at first: {instruction} Write all of it again.',
];
const REWORDINGS = [
  'Now say it in other words. All that I asked before still holds.',
  'Please write another one, with other words, and keep to what I asked.',
  'Thank you. Can you put it differently? Keep to everything that I asked.',
];
/** Of the tasks with two turns, those that ask for the same in other words. */
const REWORDED = 0.5;

/** One of them, each as often as it weighs. */
function pickWeighted<Option extends { weight: number }>(rng: Random, options: readonly Option[]): Option {
  let at = rng.next() * options.reduce((sum, { weight }) => sum + weight, 0);
  return options.find(({ weight }) => (at -= weight) < 0) ?? options[0]!;
}

/** So many that go together, with those given. */
function drawInstructions(o: { rng: Random; topic: Topic; count: number; given?: Instruction[] }): Instruction[] {
  const { rng, topic, count, given = [] } = o;
  const drawn: Instruction[] = [];
  while (drawn.length < count) {
    const kind = pickWeighted(rng, KINDS);
    const one = { kind: kind.name, demands: kind.draw(rng, topic) };
    if (goTogether([...given, ...drawn, one])) drawn.push(one);
  }
  return drawn;
}

function drawTurns(o: { rng: Random; topic: Topic; instructions: number }): Turn[] {
  const { rng, topic, instructions } = o;
  const first = drawInstructions({ rng, topic, count: instructions || 1 + rng.below(2) });
  const say = ({ kind, demands }: Instruction) => rng.pick(kindNamed(kind).say(demands));
  const request = rng.pick(REQUESTS).replace('{topic}', topic.name);
  const turns: Turn[] = [{ text: [request, ...first.map(say)].join(' '), instructions: first }];
  if (instructions > 0) return turns;
  if (rng.chance(REWORDED)) return [...turns, { text: rng.pick(REWORDINGS), instructions: [], reworded: true }];
  const more = drawInstructions({ rng, topic, count: 1, given: first });
  const text = rng.pick(ADDITIONS).replace('{instruction}', more.map(say).join(' '));
  return [...turns, { text, instructions: more }];
}

const firstText = ({ turns }: Pick<InstructionTask, 'turns'>): string => turns[0]?.text ?? '';

/** Topics in turn, so that each has as many tasks as any other. */
export function drawTasks(split: Split, count: number): InstructionTask[] {
  const topics = TOPICS[split];
  const seen = new Set<string>();
  return Array.from({ length: count }, (_, n) => {
    const id = `${split}-${n}`;
    const topic = topics[n % topics.length]!;
    for (let attempt = 0; ; attempt++) {
      const rng = random(`instructions ${id} ${attempt}`);
      const task = {
        id,
        topic,
        turns: drawTurns({ rng, topic, instructions: pickWeighted(rng, GROUPS).instructions }),
      };
      if (seen.has(firstText(task))) continue;
      seen.add(firstText(task));
      return task;
    }
  });
}

/** The row of the report's tables that a task belongs to: how much is asked for, never what. */
export function groupOf({ turns }: InstructionTask): string {
  if (turns.length > 1) return 'two turns';
  const count = turns[0]?.instructions.length;
  return GROUPS.find(({ instructions }) => instructions === count)?.name ?? '';
}

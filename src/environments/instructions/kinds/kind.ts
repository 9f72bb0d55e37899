/** A kind of instruction. Invariant: `holds` reads the text alone; what it does not ask for, it does not judge. */
import type { Random } from '../../shop/random';
import type { Topic } from '../topics';

/** What a task's instructions ask for; each field belongs to one kind, or to kinds of which a task has at most one. */
export interface Demands {
  /** Words that must be in it. */
  include?: string[];
  /** A word that must be in it twice. */
  twice?: string;
  /** A word that must not. */
  avoid?: string;
  /** A letter that must not. */
  letter?: string;
  /** Numbers of words. */
  least?: number;
  most?: number;
  sentences?: number;
  paragraphs?: number;
  bullets?: number;
  numbered?: number;
  /** Words in capital letters. */
  capitals?: number;
  start?: string;
  end?: string;
  /** What is asked for in the same way each time. */
  flags?: string[];
}

export interface InstructionKind {
  name: string;
  /** How often it is drawn, beside the others. */
  weight: number;
  draw(o: { rng: Random; topic: Topic }): Demands;
  /** Ways to ask for it. */
  say(demands: Demands): string[];
  holds(text: string, demands: Demands): boolean;
}

const NUMBERS = ['zero', 'one', 'two', 'three', 'four', 'five'];
export const spelled = (n: number): string => NUMBERS[n] ?? String(n);

/** A kind without parameters. */
export function plainKind(o: {
  name: string;
  weight: number;
  say: string[];
  holds: (text: string) => boolean;
}): InstructionKind {
  return { ...o, draw: () => ({ flags: [o.name] }), say: () => o.say };
}

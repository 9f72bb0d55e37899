/**
 * The synthesizer by generators: a candidate capability and the target's describe() in, the text of an environment module out. Invariant:
 * a pure function of its input; what goes into the module is policy text, schemas, rules and wording, never a record, a value or a text
 * of one of the target's tasks.
 */
import type { CalibrationReport } from '../../domain/calibration';
import type { Candidate } from '../../domain/capability';
import type { EnvironmentDescription } from '../../domain/environment';
import type { Message, ToolSchema } from '../../domain/messages';
import { CannotSynthesize } from '../vocabulary';
import { wordingOf, type Wording } from '../wording';
import { worldOf, type World } from '../world';
import { generatorClasses, namedField, type Plan } from './classes';
import { DESK } from './desk';
import { JUDGE } from './judge';
import { KERNEL } from './kernel';
import { knobsSchema, startKnobs, turn, type Knobs } from './params';

/** Everything that the module's fixed text is a function of: its first line. */
export interface Params extends Knobs {
  errorClass: string;
  policy: string;
  maxSteps: number;
  /** The target's tools that this environment offers. */
  tools: ToolSchema[];
  world: World;
  wording: Wording;
  /** Tools that users ask for, and the record's field that they name. */
  requested: string[];
  named: string;
  special: Plan;
  twin: Plan;
  /** messageHash() of messages that must not come up. */
  forbidden: string[];
}

export interface SynthesizeInput {
  candidate: Candidate;
  description: EnvironmentDescription;
  /** Conversations of base rollouts on the target's train split: how its users and tools put things. */
  conversations?: readonly (readonly Message[])[];
  /** messageHash() (leakage.ts) of the first user messages of the target's test tasks. */
  forbidden?: readonly string[];
  /** Counts from 1; only the rationale tells it. */
  round: number;
  /** The round before: its module's text and what calibration said of it. */
  previous?: { source: string; feedback: CalibrationReport };
}

export interface Synthesized {
  source: string;
  params: Params;
  /** Why training here should transfer. */
  rationale: string;
}

const MAX_TOOLS = 5;
const FIRST_LINE = 'export const params = ';

/** Makes the module of one round. Throws CannotSynthesize if there is no generator for the candidate or the target lacks what it needs. */
export function synthesize(input: SynthesizeInput): Synthesized {
  const { candidate, description, conversations = [], forbidden = [], round, previous } = input;
  const { errorClass } = candidate;
  if (!errorClass) {
    throw new CannotSynthesize(
      `candidate "${candidate.name}" names no errorClass: the generators work by class of error`,
    );
  }
  const generator = generatorClasses[errorClass];
  const described = worldOf(description);
  const requested = generator.requested(described);
  const tools = offered(description, described, requested);
  const names = new Set(tools.map((tool) => tool.name));
  const world = { ...described, writes: described.writes.filter((w) => names.has(w.tool)) };
  const knobs = previous ? turn(knobsOf(previous.source), previous.feedback) : startKnobs;
  const params: Params = {
    errorClass,
    ...knobs,
    policy: description.policy,
    maxSteps: description.maxSteps,
    tools,
    world,
    wording: wordingOf({ conversations, description, world }),
    requested: requested.map((w) => w.tool).filter((name) => names.has(name)),
    named: namedField(world, generator),
    special: generator.special,
    twin: generator.twin,
    forbidden: [...new Set(forbidden)].sort(),
  };
  const changed = previous ? ` Round ${round}, after "${previous.feedback.reasons.join('; ')}":` : '';
  return {
    source: `${FIRST_LINE}${JSON.stringify(params)};\n${KERNEL}${DESK}${JUDGE}`,
    params,
    rationale:
      `${generator.rationale}${changed} ${Math.round(100 * knobs.twins)}% of the instances are twins, accounts hold ` +
      `${knobs.records.join(' to ')} records, tools, observations and policy are those of ${description.name}.`,
  };
}

/** The look-up and the writes, those that are asked for first, at most 5, in the target's order. */
function offered(description: EnvironmentDescription, world: World, requested: World['writes']): ToolSchema[] {
  const others = world.writes.filter((w) => !requested.includes(w));
  const names = [world.lookup.tool, ...[...requested, ...others].map((w) => w.tool)].slice(0, MAX_TOOLS);
  return description.tools.filter((tool) => names.includes(tool.name));
}

/** The knobs that a generated module was made with. */
export function knobsOf(source: string): Knobs {
  const line = source.slice(0, source.indexOf('\n'));
  if (!line.startsWith(FIRST_LINE))
    throw new Error('the module was not made by the generators: its first line holds no params');
  return knobsSchema.parse(JSON.parse(line.slice(FIRST_LINE.length, -1)));
}

/**
 * Synthesizer `generators`: writes modules for targets that describe themselves by schemas and rules, one generator a capability.
 * Invariant: a pure function of its input; what goes into a module is policy text, schemas, rules and wording, never a record, a value
 * or a text of one of the target's tasks.
 */
import type { Candidate } from '../../domain/capability';
import type { EnvironmentDescription } from '../../domain/environment';
import { isFailure, OutsideFailure } from '../../domain/failures';
import { defineKind, type Identity } from '../../domain/kind';
import type { ToolSchema } from '../../domain/messages';
import type { ReviseInput, SynthesizedModule, Synthesizer, SynthesizerKind, WriteInput } from '../synthesizer';
import { generatorsByName, namedField, type Generator } from './capabilities';
import { startKnobs, turn, type Knobs, type Params } from './params';
import { knobsOf, moduleSource } from './source';
import { wordingOf } from './wording';
import { worldOf, type World } from './world';

const BY_HAND = 'synthesizer: {kind: given, modules: FOLDER} takes modules that you write';
const MAX_TOOLS = 5;

export const generators: SynthesizerKind = defineKind({
  kind: 'generators',
  version: '5',
  options: {},
  open: (_, identity) => openGenerators(identity),
});

function openGenerators(identity: Identity): Synthesizer {
  return {
    identity,
    ignoresSeed: true,
    unsuited,
    write: async (input) => write(input, { knobs: startKnobs }),
    revise: async (input) => write(input, revised(input)),
  };
}

function unsuited(description: EnvironmentDescription): string | undefined {
  try {
    worldOf(description);
    return undefined;
  } catch (error) {
    if (isFailure(error, 'CannotSynthesize')) return `${error.message}; or else ${BY_HAND}`;
    throw error;
  }
}

function write(
  { candidate, description, rollouts, forbidden, progress, signal }: WriteInput,
  { knobs, why = '' }: { knobs: Knobs; why?: string },
): SynthesizedModule {
  signal.throwIfAborted();
  const generator = generatorOf(candidate);
  const described = worldOf(description);
  const requested = generator.requested(described);
  const tools = offered(description, described, requested);
  const names = new Set(tools.map((tool) => tool.name));
  const world = { ...described, writes: described.writes.filter((w) => names.has(w.tool)) };
  const params: Params = {
    capability: candidate.name,
    ...knobs,
    policy: description.policy,
    maxSteps: description.maxSteps,
    tools,
    world,
    wording: wordingOf({ conversations: rollouts.map(({ messages }) => messages), description, world }),
    requested: requested.map((w) => w.tool).filter((name) => names.has(name)),
    named: namedField(world, generator),
    special: generator.special,
    twin: generator.twin,
    forbidden: [...new Set(forbidden)].sort(),
  };
  progress(1, 1);
  return {
    source: moduleSource(params),
    rationale:
      `${generator.rationale}${why} Every second instance is the twin of the one before; accounts hold ` +
      `${knobs.records.join(' to ')} records; tools, observations and policy are those of ${description.name}.`,
  };
}

/** The knobs of the next round, and what they answer. */
function revised({ round, previous }: ReviseInput): { knobs: Knobs; why: string } {
  const { source, findings, rejection, calibration } = previous;
  const before = knobsOf(source);
  // No knob mends what a self-test finds, or what a person does not like.
  const against = rejection === undefined ? findings : [...findings, `a person rejected it: ${rejection}`];
  const after = against.length === 0 && calibration ? turn(before, calibration) : before;
  const found = (against.length === 0 ? calibration?.reasons : against.slice(0, 3))?.join('; ') ?? '';
  if (JSON.stringify(after) !== JSON.stringify(before))
    return { knobs: after, why: ` Round ${round}, after "${found}":` };
  throw new OutsideFailure(
    'CannotSynthesize',
    `the generator has no more to turn (${JSON.stringify(before)}), and there is still: ${found}; ${BY_HAND}`,
  );
}

function generatorOf({ name }: Candidate): Generator {
  const found = Object.entries<Generator>(generatorsByName).find(([known]) => known === name);
  if (found) return found[1];
  throw new OutsideFailure(
    'CannotSynthesize',
    `there is no generator for "${name}", only for ${Object.keys(generatorsByName).join(', ')}; ${BY_HAND}`,
  );
}

/** The look-up and the writes, those that are asked for first, at most 5, in the target's order. */
function offered(description: EnvironmentDescription, world: World, requested: World['writes']): ToolSchema[] {
  const others = world.writes.filter((w) => !requested.includes(w));
  const names = [world.lookup.tool, ...[...requested, ...others].map((w) => w.tool)].slice(0, MAX_TOOLS);
  return description.tools.filter((tool) => names.includes(tool.name));
}

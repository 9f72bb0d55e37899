/**
 * Synthesizer `generators`: writes modules for targets that describe themselves by schemas and rules. What goes into a
 * module is policy text, schemas, rules and wording, never a record, a value or a text of one of the target's tasks.
 */
import {
  cannotSynthesize,
  defineKind,
  type EnvironmentDescription,
  type Identity,
  isFailure,
  type ReviseInput,
  type SynthesizedModule,
  type Synthesizer,
  type SynthesizerKind,
  type ToolSchema,
  type WriteInput,
} from 'campaign/plugin';
import { generatorNamed, namedField } from './capabilities';
import { type Knobs, knobsOf, moduleSource, type Params, startKnobs, turn } from './params';
import { wordingOf } from './wording';
import { worldOf, type World } from './world';

const OTHERS =
  'synthesizer: {kind: llm, url: URL, model: NAME} has a language model write them for any target (docs/language-models.md), ' +
  '{kind: given, modules: FOLDER} takes modules that you write';
const MAX_TOOLS = 5;

export const generators: SynthesizerKind = defineKind({
  kind: 'generators',
  version: '9',
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
    if (isFailure(error, 'CannotSynthesize')) return `${error.message}; or else ${OTHERS}`;
    throw error;
  }
}

function write(
  { candidate, description, rollouts, forbidden, progress, signal }: WriteInput,
  { knobs, why = '' }: { knobs: Knobs; why?: string },
): SynthesizedModule {
  signal.throwIfAborted();
  const described = worldOf(description);
  const { special, twin, requested, rationale } = forCapability(candidate.name, described);
  const tools = offeredTools(description, described, requested);
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
    named: namedField(world),
    plans: { special, twin },
    requested: requested.filter((name) => names.has(name)),
    forbidden: [...new Set(forbidden)].sort(),
  };
  progress(1, 1);
  return {
    source: moduleSource(params),
    rationale:
      `${rationale}${why} Every second instance is the twin of the one before; accounts hold ` +
      `${knobs.records.join(' to ')} records; tools, observations and policy are those of ${description.name}.`,
  };
}

/** The knobs of the next round, and what they answer. */
function revised({ round, previous }: ReviseInput): { knobs: Knobs; why: string } {
  const { source, findings, rejection, calibration } = previous;
  // No knob mends what a self-test finds, or what a person does not like.
  const against = rejection === undefined ? findings : [...findings, `a person rejected it: ${rejection}`];
  const found = (against.length === 0 ? calibration?.reasons : against.slice(0, 3))?.join('; ') ?? '';
  const before = knobsOf(source);
  if (!before)
    throw cannotSynthesize(
      `the module was not made by the generators (its first line holds no params of theirs), so they can't mend it, and there is still: ${found}; ${OTHERS}`,
    );
  const after = against.length === 0 && calibration ? turn(before, calibration) : before;
  if (JSON.stringify(after) !== JSON.stringify(before))
    return { knobs: after, why: ` Round ${round}, after "${found}":` };
  throw cannotSynthesize(
    `the generator has no more to turn (${JSON.stringify(before)}), and there is still: ${found}; ${OTHERS}`,
  );
}

function forCapability(name: string, world: World) {
  try {
    const generator = generatorNamed(name);
    return { ...generator, requested: generator.requested(world).map(({ tool }) => tool) };
  } catch (error) {
    if (!isFailure(error, 'CannotSynthesize')) throw error;
    throw cannotSynthesize(`${error.message}; ${OTHERS}`);
  }
}

/** The look-up and the writes, those that are asked for first, at most 5, in the target's order. */
function offeredTools(description: EnvironmentDescription, world: World, requested: readonly string[]): ToolSchema[] {
  const names = new Set([world.lookup.tool, ...requested, ...world.writes.map((w) => w.tool)]);
  const first = [...names].slice(0, MAX_TOOLS);
  return description.tools.filter((tool) => first.includes(tool.name));
}

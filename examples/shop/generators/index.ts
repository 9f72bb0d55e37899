/**
 * Synthesizer `generators`: writes modules for the shop. What goes into a module is policy text, schemas, rules and
 * wording, never a record, a value or a text of one of its tasks.
 */
import {
  cannotSynthesize,
  defineKind,
  type EnvironmentDescription,
  type Identity,
  type ReviseInput,
  type SynthesizedModule,
  type Synthesizer,
  type SynthesizerKind,
  type WriteInput,
} from 'trace-campaign/plugin';
import { type Generator, generatorsByName } from './capabilities';
import { type Knobs, knobsOf, moduleSource, type Params, startKnobs, turn } from './params';
import { wordingOf } from './wording';
import { world } from './world';

const OTHERS =
  'synthesizer: {kind: llm, url: URL, model: NAME} has a language model write them for any target (docs/language-models.md), ' +
  '{kind: given, modules: FOLDER} takes modules that you write';
const TOOLS = new Set([world.lookup.tool, ...world.writes.map(({ tool }) => tool)]);

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

const unsuited = ({ name }: EnvironmentDescription): string | undefined =>
  name === 'shop'
    ? undefined
    : `synthesizer.kind is "generators": it writes modules for the shop alone, not for "${name}"; ${OTHERS}`;

function write(
  { candidate, description, rollouts, forbidden, progress, signal }: WriteInput,
  { knobs, why = '' }: { knobs: Knobs; why?: string },
): SynthesizedModule {
  signal.throwIfAborted();
  const { special, twin, requested, rationale } = forCapability(candidate.name);
  const params: Params = {
    capability: candidate.name,
    ...knobs,
    policy: description.policy,
    maxSteps: description.maxSteps,
    tools: description.tools.filter(({ name }) => TOOLS.has(name)),
    world,
    wording: wordingOf(rollouts.map(({ messages }) => messages)),
    named: 'item',
    plans: { special, twin },
    requested,
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
  // No knob changes what a self-test finds, or what a person does not like.
  const against = rejection === undefined ? findings : [...findings, `a person rejected it: ${rejection}`];
  const found = (against.length === 0 ? calibration?.reasons : against.slice(0, 3))?.join('; ') ?? '';
  const before = knobsOf(source);
  const after = before && calibration && against.length === 0 ? turn(before, calibration) : before;
  if (after && JSON.stringify(after) !== JSON.stringify(before))
    return { knobs: after, why: ` Round ${round}, after "${found}":` };
  throw cannotSynthesize(
    `the generators have nothing to change (${JSON.stringify(before)}), and there is still: ${found}; ${OTHERS}`,
  );
}

function forCapability(name: string): Generator {
  if (Object.hasOwn(generatorsByName, name)) return generatorsByName[name as keyof typeof generatorsByName];
  const known = Object.keys(generatorsByName).join(', ');
  throw cannotSynthesize(`there is no generator for "${name}", only for ${known}; ${OTHERS}`);
}

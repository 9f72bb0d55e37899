/** What is wrong with a module for a target. Invariant: each defect names the place, the value and how to mend it; a few seeds, at most. */
import { isDeepStrictEqual } from 'node:util';
import { SUCCESS } from '../../domain/rollout';
import type { EnvironmentDescription } from '../../domain/environment';
import type { ToolSchema } from '../../domain/messages';
import { jsonOf } from '../../sandbox/copied-values';
import { LEAKING_SHARE, leaksOf } from '../../sandbox/instance-leaks';
import { mayOffer, OFFERED_TOOLS } from '../../sandbox/limits';
import { REQUIRED_EXPORTS, type EnvironmentModule } from '../../sandbox/module';
import { play, told } from '../../sandbox/scripted-episode';
import { HELD_OUT_SEEDS, TRAINING_SEEDS } from '../../sandbox/seeds';
import { copiedIdentifiers, quotesTask } from './leaks';
import { answersIn, type Sample } from './target';

export interface Target {
  description: EnvironmentDescription;
  samples: readonly Sample[];
  forbidden: readonly string[];
  /** All that the model was shown of the target's data. */
  shown: string;
}

const SEEDS = [0, 1, 2, 3, TRAINING_SEEDS, HELD_OUT_SEEDS + 1];
const LEAK_SEEDS = [0, TRAINING_SEEDS, HELD_OUT_SEEDS].flatMap((from) => Array.from({ length: 8 }, (_, n) => from + n));
const TOLD_CHARS = 1_500;

export async function targetDefects(o: {
  module: EnvironmentModule;
  source: string;
  target: Target;
}): Promise<string[]> {
  const { module, source, target } = o;
  const names = await module.exports();
  const missing = REQUIRED_EXPORTS.filter((name) => !names.includes(name));
  if (missing.length > 0)
    return [`the module does not export ${missing.join(', ')}: export a function under each name`];
  const { tools } = await module.describe();
  const defects = [...toolDefects(tools, target.description)];
  const copied = copiedIdentifiers(source, { shown: target.shown, target: target.description });
  if (copied.length > 0)
    defects.push(
      `it copies identifiers from the real attempts (${copied.slice(0, 5).join(', ')}): draw identifiers of the same form from the seed`,
    );
  // The reward is asked before anything was done, too.
  for (const seed of SEEDS) await play(module, { seed, script: [] });
  const solved = [];
  for (const seed of SEEDS) solved.push(await play(module, { seed, script: await module.solve(seed) }));
  const bad = solved.find(({ reward, done }) => reward < SUCCESS || !done);
  if (bad)
    defects.push(
      `solve(${bad.seed}) gets the reward ${bad.reward} (${JSON.stringify(bad.breakdown)}) and the episode is ` +
        `${bad.done ? 'done' : 'not done after its last message'}; it must score 1 and end the episode: ${told(bad.messages, TOLD_CHARS)}`,
    );
  defects.push(
    ...shapeDefects(
      solved.flatMap(({ messages }) => answersIn(messages)),
      target.samples,
    ),
  );
  const { forbidden } = target;
  if (quotesTask(source, forbidden))
    defects.push('the code holds the text of a task that must not be known: compose the texts from the seed');
  const leaks = defects.length > 0 ? [] : await leaksOf(module, { seeds: LEAK_SEEDS, forbidden });
  // Some by coincidence are left out when the seeds are used.
  if (leaks.length > LEAKING_SHARE * LEAK_SEEDS.length) {
    const { seed, who } = leaks[0]!;
    defects.push(`seed ${seed}: ${who} says the text of a task that must not be known: word these texts otherwise`);
  }
  return defects;
}

function* toolDefects(tools: readonly ToolSchema[], description: EnvironmentDescription): Generator<string> {
  if (description.tools.length === 0 && tools.length > 0)
    yield `describe: ${tools.length} tools, and the target has none: give []`;
  else if (description.tools.length > 0 && (tools.length === 0 || !mayOffer(tools.length)))
    yield `describe: ${tools.length} tools: offer ${OFFERED_TOOLS.fewest} to ${OFFERED_TOOLS.most} of the target's`;
  for (const tool of tools) {
    const own = description.tools.find(({ name }) => name === tool.name);
    if (!own) {
      yield `describe: the target has no tool ${tool.name}: offer tools of the target only, as targetTools.NAME`;
      continue;
    }
    const parts = ['description', 'parameters', 'outputSchema', 'annotations'] as const;
    const changed = parts.filter((part) => !isDeepStrictEqual(plain(tool[part]), plain(own[part])));
    if (changed.length > 0)
      yield `describe: ${changed.join(' and ')} of ${tool.name} are not the target's: take the tool as targetTools.${tool.name}`;
  }
}

const plain = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)));

/** Where the target's tool answers with JSON objects, so does the module's, with the fields that all of the target's have. */
function* shapeDefects(own: readonly Sample[], samples: readonly Sample[]): Generator<string> {
  for (const tool of new Set(own.map((one) => one.tool))) {
    const real = objectsOf(samples, tool);
    if (real.length === 0) continue;
    const made = objectsOf(own, tool);
    const example = own.find((one) => one.tool === tool)?.content.slice(0, 200);
    if (made.length === 0) {
      yield `step: ${tool} answers "${example}", and the target's answers with JSON: answer with JSON.stringify of an object of the same fields`;
      continue;
    }
    const spaced = (tools: readonly Sample[]): boolean =>
      tools.some((one) => one.tool === tool && /^\{"[^"]*": /.test(one.content));
    if (spaced(samples) !== spaced(own))
      yield `step: ${tool} answers "${example}", and the target's JSON is written ${spaced(samples) ? 'with' : 'without'} a space after colons and commas: write it so`;
    // One alone does not tell which fields are always there.
    const [first = {}] = real;
    const always = real.length < 2 ? [] : Object.keys(first).filter((key) => real.every((each) => key in each));
    const lacking = always.filter((key) => made.some((each) => !(key in each)));
    if (lacking.length > 0)
      yield `step: ${tool} answers "${example}", without ${lacking.join(', ')}, which the target's answers always have: give the same fields`;
  }
}

const objectsOf = (samples: readonly Sample[], tool: string): object[] =>
  samples.flatMap((sample) => {
    const value = sample.tool === tool ? jsonOf(sample.content) : undefined;
    return value && !Array.isArray(value) ? [value] : [];
  });

/**
 * Turns a model's reply into a module that loads, keeps its contract on a few seeds and has the target's tools, policy and observations. Defects are worded
 * for the model. Attacks: a model proposes scripts that try to score without the capability, and the self-test plays them.
 */
import { isDeepStrictEqual } from 'node:util';
import type { EnvironmentDescription } from '../../domain/environment';
import { reasonOf, isFailure } from '../../domain/failures';
import type { ToolSchema } from '../../domain/messages';
import { isSuccess } from '../../domain/rollout';
import { codeIn, type Read, answerOf, readJsonAnswer, renderPrompt } from '../../llm/answer';
import { type Attack, attackLine, attackSchema } from '../../sandbox/attacks';
import { type Answer, answersIn, conversationLine, jsonOf } from '../../sandbox/conversation';
import { copiedIdentifiers, LEAKING_SHARE, leaksOf, quotesTask } from '../../sandbox/leakage';
import { mayOffer, OFFERED_TOOLS } from '../../sandbox/limits';
import { type EnvironmentModule, missingExports, withModule, play } from '../../sandbox/module';
import { SandboxError, unlessItFails } from '../../sandbox/sandbox';
import { HELD_OUT_SEEDS, TRAINING_SEEDS } from '../../domain/seeds';
import { staticFindings, withTools } from '../../sandbox/source';
import type { SynthesizedModule } from '../synthesizer';
import { z } from 'zod';
import type { Candidate } from '../../domain/capability';
import type { Asking, LanguageModel } from '../../llm/model';

const LANGUAGES = ['javascript', 'js', 'mjs'];
/** The line that withTools() writes, and no beginning of a declaration of the model's own. */
const TOOLS_LINE = /^const targetTools = \{.*\};\n/;
const NOTES = /^\/\/ (?:Rationale|Attack): .*$/gm;

/** Returns the part of a module that the model wrote, without the added declarations and notes. */
export const ownCode = (source: string): string => source.replace(TOOLS_LINE, '').replace(NOTES, '').trim();

export const withAttacks = (source: string, attacks: readonly Attack[]): string =>
  [source.trimEnd(), ...attacks.map(attackLine)].join('\n');

export async function readModule(text: string, target: Target): Promise<Read<SynthesizedModule>> {
  const code = codeIn(text, LANGUAGES);
  if (code === undefined)
    return { defects: ['there is no fenced block of ```javascript in it; give the whole module in one such block'] };
  const rationale = rationaleIn(text);
  const defects = rationale === undefined ? ['there is no line "Rationale: ..." after the code; add it'] : [];
  const broken = await syntaxDefect(code);
  if (broken !== undefined) return { defects: [...defects, broken] };
  // Attacks come from other requests, and the rationale is stored separately.
  const own = code.replace(NOTES, '');
  const source = withTools(own, target.description);
  defects.push(...staticFindings(own));
  if (defects.length === 0)
    defects.push(...(await inSandbox(source, (module) => targetDefects({ module, source, target }))));
  return defects.length > 0 ? { defects } : { value: { source, rationale: rationale ?? '' } };
}

/** Returns the text after the last "Rationale:" at the beginning of a line or comment. If that line has no more text, as in a heading, returns the next line. */
function rationaleIn(text: string): string | undefined {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  for (const [n, line] of [...lines.entries()].reverse()) {
    const head = /^[\s*_#>/-]*Rationale[\s*_]*:/i.exec(line)?.[0];
    if (head === undefined) continue;
    const said = [line.slice(head.length), lines[n + 1] ?? ''].map(bare).find((words) => words !== '');
    if (said !== undefined) return said;
  }
  return undefined;
}

/** Returns the text without emphasis. */
const bare = (words: string): string => words.replaceAll('*', '').trim();

/** Found in the code as it was written, so that the number of the line is that of the answer. */
async function syntaxDefect(code: string): Promise<string | undefined> {
  const [problem] = await inSandbox(code, async (module) => (await module.exports(), []));
  return problem?.includes('SyntaxError') ? problem : undefined;
}

async function inSandbox(source: string, look: (module: EnvironmentModule) => Promise<string[]>): Promise<string[]> {
  try {
    return await withModule(source, look);
  } catch (error) {
    if (error instanceof SandboxError) return [`the module fails: ${reasonOf(error)}`];
    throw error;
  }
}

export interface Target {
  description: EnvironmentDescription;
  samples: readonly Answer[];
  forbidden: readonly string[];
  shown: string;
}

const SEEDS = [0, 1, 2, 3, TRAINING_SEEDS, HELD_OUT_SEEDS + 1];
const LEAK_SEEDS = [0, TRAINING_SEEDS, HELD_OUT_SEEDS].flatMap((from) => Array.from({ length: 8 }, (_, n) => from + n));
const TOLD_CHARS = 1_500;

async function targetDefects(o: { module: EnvironmentModule; source: string; target: Target }): Promise<string[]> {
  const { module, source, target } = o;
  const names = await module.exports();
  const missing = missingExports(names);
  if (missing !== undefined) return [missing];
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
  const bad = solved.find((episode) => !isSuccess(episode) || !episode.done);
  if (bad)
    defects.push(
      `solve(${bad.seed}) gets the reward ${bad.reward} (${JSON.stringify(bad.breakdown)}) and the episode is ` +
        `${bad.done ? 'done' : 'not done after its last message'}; it must score 1 and end the episode: ${conversationLine(bad.messages, TOLD_CHARS)}`,
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

/** Yields a defect if the target's tool answers with JSON objects and the module's does not, or lacks fields that all of the target's have. */
function* shapeDefects(own: readonly Answer[], samples: readonly Answer[]): Generator<string> {
  for (const tool of new Set(own.map((one) => one.tool))) {
    const real = objectsOf(samples, tool);
    if (real.length === 0) continue;
    const made = objectsOf(own, tool);
    const example = own.find((one) => one.tool === tool)?.content.slice(0, 200);
    if (made.length === 0) {
      yield `step: ${tool} answers "${example}", and the target's answers with JSON: answer with JSON.stringify of an object of the same fields`;
      continue;
    }
    const spaced = (tools: readonly Answer[]): boolean =>
      tools.some((one) => one.tool === tool && /^\{"[^"]*": /.test(one.content));
    if (spaced(samples) !== spaced(own))
      yield `step: ${tool} answers "${example}", and the target's JSON is written ${spaced(samples) ? 'with' : 'without'} a space after colons and commas: write it so`;
    // A single answer does not show which fields are always present.
    const [first = {}] = real;
    const always = real.length < 2 ? [] : Object.keys(first).filter((key) => real.every((each) => key in each));
    const lacking = always.filter((key) => made.some((each) => !(key in each)));
    if (lacking.length > 0)
      yield `step: ${tool} answers "${example}", without ${lacking.join(', ')}, which the target's answers always have: give the same fields`;
  }
}

const objectsOf = (samples: readonly Answer[], tool: string): object[] =>
  samples.flatMap((sample) => {
    const value = sample.tool === tool ? jsonOf(sample.content) : undefined;
    return value && !Array.isArray(value) ? [value] : [];
  });

const SHOWN_SEEDS = [0, 1, 2];

/** Settings of the attacks on a module. `attacks`: their maximum number. */
export interface AttackOptions {
  model: LanguageModel;
  repairs: number;
  attacks: number;
}

export async function attacksOn(
  { source, candidate }: { source: string; candidate: Candidate },
  { model, repairs, attacks: most, seed, asking }: AttackOptions & { seed: number; asking: Asking },
): Promise<Attack[]> {
  if (most === 0) return [];
  const shown = await shownOf(source);
  if (!shown) return [];
  const { tools, beginnings, breakdown } = shown;
  const messages = renderPrompt('attack', {
    most: String(most),
    capability: candidate.name,
    definition: candidate.definition || '(none was given)',
    tools: tools.map((tool) => JSON.stringify(tool)).join('\n') || '(none)',
    beginnings,
    breakdown: breakdown.join(', ') || '(nothing)',
    source: ownCode(source),
  });
  const names = new Set(tools.map(({ name }) => name));
  try {
    const read = (text: string) => readAttacks(text, names, most);
    return await answerOf({ model, messages, seed, repairs, asking, read });
  } catch (error) {
    if (isFailure(error, 'AnswerInvalid')) return [];
    throw error;
  }
}

/** Returns the parts of a module that the attack prompt shows; undefined if it fails, which the self-test reports better. */
const shownOf = (source: string) =>
  unlessItFails(
    withModule(source, async (module) => {
      const { tools } = await module.describe();
      const begun = await Promise.all(
        SHOWN_SEEDS.map(async (seed) => {
          const state = await module.make(seed);
          return { seed, messages: await module.start(state), reward: await module.reward(state) };
        }),
      );
      const beginnings = begun.flatMap(({ seed, messages }) =>
        messages.flatMap(({ role, content }) => (role === 'user' ? [`seed ${seed}: ${content}`] : [])),
      );
      return { tools, beginnings: beginnings.join('\n'), breakdown: Object.keys(begun[0]?.reward.breakdown ?? {}) };
    }),
  );

function readAttacks(text: string, tools: ReadonlySet<string>, most: number): Read<Attack[]> {
  const answer = readJsonAnswer(text, z.strictObject({ attacks: z.array(attackSchema).max(most) }));
  if ('defects' in answer) return answer;
  const { attacks } = answer.value;
  const unknown = attacks.flatMap(({ messages }) =>
    messages.flatMap(({ calls = [] }) => calls.flatMap(({ name }) => (tools.has(name) ? [] : [name]))),
  );
  if (unknown.length > 0) return { defects: [`there is no tool ${unknown[0]}: call ${[...tools].join(', ')} only`] };
  return { value: attacks };
}

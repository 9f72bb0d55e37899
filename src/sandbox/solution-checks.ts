/** What the reference solutions and the hints show of a module. */
import { createHash } from 'node:crypto';
import type { Reference } from '../domain/environment';
import type { Message, ToolSchema } from '../domain/messages';
import { SUCCESS } from '../domain/rollout';
import { callsIn, assistantMessages } from './audit-policies';
import { jsonOf } from './copied-values';
import { quoted } from './limits';
import type { EnvironmentModule } from './module';
import type { ScriptedEpisode, Stage } from './play';
import { hasShape, recordShape } from './vocabulary';

const DISTINCT = 0.8;
/** Of the held-out instances, which are to tell what an adapter has learned by heart from what it can do. */
const REPEATED = 0.1;

/** Solutions score 1, end the episode and fit into its steps. */
export function* solutionFindings(solved: readonly ScriptedEpisode[], maxSteps: number): Generator<string> {
  const bad = failed(solved);
  const [first] = bad;
  if (first)
    yield (
      `solve: ${bad.length} of ${solved.length} reference solutions score below 1, e.g. seed ${first.seed} with ` +
      `${first.reward} (${quoted(JSON.stringify(first.breakdown))}): make solve and reward agree`
    );
  const open = solved.find(({ done }) => !done);
  if (open)
    yield `solve: seed ${open.seed} is not done after the last message: end the episode or add the closing message`;
  const long = solved.find(({ messages }) => assistantMessages(messages).length > maxSteps);
  if (long)
    yield (
      `describe: maxSteps ${maxSteps} is below the ${assistantMessages(long.messages).length} messages of the reference solution ` +
      `of seed ${long.seed}: raise maxSteps`
    );
}

export const failed = (solved: readonly ScriptedEpisode[]): ScriptedEpisode[] =>
  solved.filter(({ reward }) => reward < SUCCESS);

/** Instances differ in what an agent is told and has to do: a number in the state that nobody sees makes no other instance. */
export function* diversityFindings(solved: readonly ScriptedEpisode[]): Generator<string> {
  const distinct = new Set(solved.map(instanceHash)).size;
  if (distinct < DISTINCT * solved.length)
    yield (
      `make: ${distinct} distinct instances of ${solved.length}, by what is said in their solutions: draw more of the ` +
      `instance from the seed (80% must differ)`
    );
}

/** A module with a few hundred instances has most of them in training. */
export function* repeatFindings(
  heldOut: readonly ScriptedEpisode[],
  training: readonly ScriptedEpisode[],
): Generator<string> {
  const trained = new Map(training.map((episode) => [instanceHash(episode), episode.seed]));
  const repeated = heldOut.filter((episode) => trained.has(instanceHash(episode)));
  const [first] = repeated;
  if (first && repeated.length > REPEATED * heldOut.length)
    yield (
      `make: ${repeated.length} of ${heldOut.length} held-out seeds give an instance of one of ${training.length} training seeds, e.g. seed ` +
      `${first.seed} that of seed ${trained.get(instanceHash(first))}: draw more of the instance from the seed (10% may be alike)`
    );
}

const instanceHash = ({ messages }: ScriptedEpisode): string =>
  createHash('sha256').update(JSON.stringify(messages)).digest('hex');

/** Observations have the shape of their tool's outputSchema; without one, none is broken JSON. */
export function* observationFindings(
  solved: readonly ScriptedEpisode[],
  tools: readonly ToolSchema[],
): Generator<string> {
  for (const { name, outputSchema } of tools) {
    const results = solved.flatMap(({ seed, messages }) =>
      resultsOf(messages, name).map((content) => ({ seed, content })),
    );
    if (!outputSchema) {
      yield* brokenJson(name, results);
      continue;
    }
    const shape = recordShape(outputSchema);
    const compared = new Map(
      [...new Set(results.map(({ content }) => content))].map((text) => [text, hasShape(shape, text)]),
    );
    const wrong = results.find(({ content }) => compared.get(content) !== true);
    if (!wrong) continue;
    const what = `step: seed ${wrong.seed}: "${quoted(wrong.content)}" of ${quoted(name, 100)}`;
    if (compared.get(wrong.content) === false) yield `${what} does not have the shape of its outputSchema`;
    else
      yield `${what} takes too long to compare with its outputSchema: make observations shorter, or fields less alike`;
  }
}

/** Begins as JSON does, and as no Python text and no prose does. */
const AS_JSON = /^\s*\[?\s*\{\s*"/;

function* brokenJson(tool: string, results: readonly { seed: number; content: string }[]): Generator<string> {
  const broken = results.find(({ content }) => AS_JSON.test(content) && !jsonOf(content));
  if (broken)
    yield (
      `step: seed ${broken.seed}: "${quoted(broken.content)}" of ${quoted(tool, 100)} is broken JSON: ` +
      `write it with JSON.stringify`
    );
}

/** Each call is answered before the assistant speaks again. */
function resultsOf(messages: readonly Message[], tool: string): string[] {
  const open = new Set<string>();
  return messages.flatMap((message) => {
    if (message.role === 'assistant') {
      open.clear();
      for (const { id, name } of message.toolCalls ?? []) if (name === tool) open.add(id);
    }
    return message.role === 'tool' && open.has(message.toolCallId) ? [message.content] : [];
  });
}

const MOST_CHARS = 600;
/** Values that are looked for in an instance, their characters, and those of its first messages in which they are. */
const LOOKED = { values: 64, valueChars: 200, chars: 20_000 };

interface Hinted {
  module: EnvironmentModule;
  stage: Stage;
  solved: readonly ScriptedEpisode[];
  tools: readonly ToolSchema[];
}

/** At most one finding of each kind. */
export async function* hintFindings({ module, stage, solved, tools }: Hinted): AsyncGenerator<string> {
  const hinted = await stage.each(solved, async (episode) => {
    const state = await module.make(episode.seed);
    const secrets = secretsOf(episode, await module.reference(state));
    const hint = await module.hint(state);
    return { seed: episode.seed, hint, holds: holder(hint.slice(0, MOST_CHARS)), secrets };
  });
  const long = hinted.find(({ hint }) => hint.length > MOST_CHARS);
  if (long)
    yield `hint: seed ${long.seed} gives ${long.hint.length} characters: say it in 1 to 4 sentences, at most ${MOST_CHARS} characters`;

  const called = hinted.flatMap(({ seed, hint, holds }) =>
    tools.filter(({ name }) => holds(name)).map(({ name }) => ({ seed, hint, name })),
  );
  const [call] = called;
  if (call)
    yield (
      `hint: seed ${call.seed}: "${quoted(call.hint)}" names the tool ${quoted(call.name, 100)}: say what kind of thing ` +
      `to do, in words of the policy`
    );

  const told = hinted.flatMap(({ seed, hint, holds, secrets }) =>
    secrets.filter(holds).map((secret) => ({ seed, hint, secret })),
  );
  const [value] = told;
  if (value)
    yield (
      `hint: seed ${value.seed}: "${quoted(value.hint)}" gives away "${quoted(value.secret, 100)}", an argument of the ` +
      `solution that the first messages do not hold: say how to find it`
    );
}

/** Arguments of the solution's calls that the first messages do not hold. */
function secretsOf(episode: ScriptedEpisode, { actions }: Reference): string[] {
  const given = [...callsIn(episode.messages), ...actions].flatMap(({ arguments: values }) => valuesOf(values));
  const values = [...new Set(given)].filter(({ length }) => length <= LOOKED.valueChars).slice(0, LOOKED.values);
  // The user's words come last, and are looked at before a long policy.
  const said = episode.start.map(({ content }) => content).reverse();
  const holds = holder(said.join('\n').slice(0, LOOKED.chars));
  return values.filter((value) => !holds(value));
}

function valuesOf(given: unknown): string[] {
  if (typeof given === 'string' || typeof given === 'number') return [String(given).trim()].filter(Boolean);
  return typeof given === 'object' && given !== null ? Object.values(given).flatMap(valuesOf) : [];
}

const WORD = /[\p{L}\p{N}_]/u;

/** Whether the text holds these words, not as a part of longer ones. */
export const holdsWords = (text: string, words: string): boolean => holder(text)(words);

function holder(text: string): (words: string) => boolean {
  const within = text.toLowerCase();
  const inWord = (at: number, edge: string | undefined): boolean =>
    WORD.test(within[at] ?? '') && edge !== undefined && WORD.test(edge);
  return (words) => {
    const sought = words.toLowerCase();
    for (let at = within.indexOf(sought); at >= 0; at = within.indexOf(sought, at + 1))
      if (!inWord(at - 1, sought[0]) && !inWord(at + sought.length, sought.at(-1))) return true;
    return false;
  };
}

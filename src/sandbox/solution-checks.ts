/** What the reference solutions show of a module. Invariant: each finding says what is wrong, where, and how to mend it. */
import { createHash } from 'node:crypto';
import type { Message, ToolSchema } from '../domain/messages';
import { SUCCESS } from '../domain/rollout';
import { saidBy } from './audit-policy';
import { jsonOf } from './copied-values';
import { hasShape, recordShape } from './records';
import type { ScriptedEpisode } from './scripted-episode';
import { quoted } from './text';

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
  const long = solved.find(({ messages }) => saidBy(messages).length > maxSteps);
  if (long)
    yield (
      `describe: maxSteps ${maxSteps} is below the ${saidBy(long.messages).length} messages of the reference solution ` +
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

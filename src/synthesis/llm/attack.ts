/**
 * A second look at a module: a model proposes scripts that try to score without the capability, for the self-test to
 * play.
 */
import { z } from 'zod';
import type { Candidate } from '../../domain/capability';
import { isFailure } from '../../domain/failures';
import { answerOf, jsonIn, type Read } from '../../language-model/answer';
import type { Asking } from '../../language-model/types';
import { attackSchema, type Attack } from '../../sandbox/attacks';
import { withModule } from '../../sandbox/module';
import { unlessItFails } from '../../sandbox/sandbox';
import type { Means } from './llm';
import { ownCode } from './read-module';

const SEEDS = [0, 1, 2];

export async function attacksOn(
  { source, candidate }: { source: string; candidate: Candidate },
  { model, prompts, repairs, attacks: most, seed, asking }: Means & { seed: number; asking: Asking },
): Promise<Attack[]> {
  if (most === 0) return [];
  const shown = await shownOf(source);
  if (!shown) return [];
  const { tools, beginnings, breakdown } = shown;
  const messages = prompts.render('attack', {
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
    return await answerOf({ model, messages, seed, repairs, asking, prompts, read });
  } catch (error) {
    if (isFailure(error, 'AnswerInvalid')) return [];
    throw error;
  }
}

/** What is shown of a module; undefined where it fails: the self-test finds that, and says it better. */
const shownOf = (source: string) =>
  unlessItFails(
    withModule(source, async (module) => {
      const { tools } = await module.describe();
      const begun = await Promise.all(
        SEEDS.map(async (seed) => {
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
  const json = jsonIn(text);
  if ('defect' in json) return { defects: [json.defect] };
  const parsed = z.strictObject({ attacks: z.array(attackSchema).max(most) }).safeParse(json.value);
  if (!parsed.success)
    return {
      defects: parsed.error.issues
        .slice(0, 10)
        .map(({ path, message }) => `${path.join('.') || 'the answer'}: ${message}`),
    };
  const unknown = parsed.data.attacks.flatMap(({ messages }) =>
    messages.flatMap(({ calls = [] }) => calls.flatMap(({ name }) => (tools.has(name) ? [] : [name]))),
  );
  if (unknown.length > 0) return { defects: [`there is no tool ${unknown[0]}: call ${[...tools].join(', ')} only`] };
  return { value: parsed.data.attacks };
}

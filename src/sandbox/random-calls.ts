/** Calls of an agent that knows the tools' schemas and nothing else. Invariant: a function of schemas and seed. */
import type { ToolSchema } from '../domain/messages';
import { callAll, valueOf } from './audit-policy';
import { vocabularyOf } from './vocabulary';

/** Three calls of any tools with any values, a function of the seed. */
export function randomCalls(tools: readonly ToolSchema[], seed: number): ReturnType<typeof callAll>[] {
  let state = seed + 1;
  const below = (limit: number): number => {
    state = Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5;
    return ((state ^ (state >>> 13)) >>> 0) % limit;
  };
  const pick = <Item>(items: readonly Item[]): Item => items[below(items.length)]!;
  return Array.from({ length: 3 }, () => {
    const { name, parameters } = pick(tools);
    const given = Object.entries(parameters.properties ?? {}).map(([field, schema]) => {
      const vocabulary = vocabularyOf(schema);
      return [field, vocabulary ? valueOf(vocabulary, pick) : ''];
    });
    return callAll([{ name, arguments: Object.fromEntries(given) }]);
  });
}

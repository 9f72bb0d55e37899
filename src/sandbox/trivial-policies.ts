/**
 * Policies that do not look at what they are told, or only copy it: no environment may reward them. Blind ones are scripts; those that copy
 * may do the right thing on instances that ask for nothing else, and are allowed as much as a shortcut.
 */
import type { ToolSchema } from '../domain/messages';
import {
  callAll,
  callsIn,
  callWith,
  heardFrom,
  isWrite,
  recordsIn,
  saidBy,
  say,
  valueOf,
  type AuditPolicy,
  type Call,
  type Limits,
} from './audit-policy';
import type { Script, ScriptedEpisode } from './scripted-episode';
import { vocabularyOf } from './vocabulary';

const MOST_TEXTS = 8;
const TWENTY_WORDS = Array.from({ length: 20 }, () => 'yes').join(' ');

interface Audited {
  tools: readonly ToolSchema[];
  solved: readonly ScriptedEpisode[];
}

/**
 * Do nothing, submit at once or say one of the most frequent texts of the solutions (denial, question, closing), repeat the user, say much;
 * call one tool over and over, all writes twice, tools at random.
 */
export function blindPolicies({ tools, solved }: Audited, limits: Limits): AuditPolicy[] {
  const texts = frequentTexts(solved);
  const [closing = 'done .'] = texts;
  const always = (name: string, script: Script): AuditPolicy => ({ name, limits, on: () => script });
  const first = (tool: ToolSchema): Omit<Call, 'id'> => callWith(tool, []);
  return [
    always('doing nothing', []),
    always('an empty message', [say('')]),
    ...texts.map((text) => always(`always saying "${text}"`, [say(text), say(text)])),
    always('saying what the user says', (conversation) => {
      return saidBy(conversation).length < 3 ? say(heardFrom(conversation, 'user').at(-1) ?? '') : undefined;
    }),
    always('saying twenty words', [say(TWENTY_WORDS), say(TWENTY_WORDS)]),
    ...tools.map((tool) => {
      const message = callAll([first(tool)]);
      return always(`calling ${tool.name} over and over`, [message, message, message, message, say(closing)]);
    }),
    always('every write twice', [
      callAll(tools.filter(isWrite).flatMap((tool) => [first(tool), first(tool)])),
      say(closing),
    ]),
    { name: 'random calls', limits, on: ({ seed }) => [...randomCalls(tools, seed), say(closing)] },
  ];
}

/** Call one tool with what the user named; call every tool on every record that the look-ups show. */
export function copyingPolicies({ tools, solved }: Audited, limits: Limits): AuditPolicy[] {
  const [closing = 'done .'] = frequentTexts(solved);
  const writes = tools.filter(isWrite);
  const reads = tools.filter((tool) => !isWrite(tool));
  const distinct = ({ messages }: ScriptedEpisode): number =>
    new Set(
      callsIn(messages).flatMap((c) =>
        writes.some(({ name }) => name === c.name) ? [JSON.stringify([c.name, c.arguments])] : [],
      ),
    ).size;
  return [
    ...writes.map((tool) => ({
      name: `calling ${tool.name} with what the user named`,
      limits,
      on: ({ start }: ScriptedEpisode): Script => [callAll([callWith(tool, heardFrom(start, 'user'))]), say(closing)],
    })),
    {
      name: 'every write on every record',
      limits,
      on: () => (conversation) => {
        const user = heardFrom(conversation, 'user');
        const step = saidBy(conversation).length;
        const read = reads[step];
        if (read) return callAll([callWith(read, user)]);
        if (step > reads.length) return step === reads.length + 1 ? say(closing) : undefined;
        const records = recordsIn(conversation);
        const shown = records.length > 0 ? records : [''];
        return callAll(shown.flatMap((text) => writes.map((tool) => callWith(tool, [text, ...user]))).slice(0, 40));
      },
      // Where the solution writes as much, it is the solution.
      counts: (played, reference) => distinct(played) > distinct(reference),
    },
  ];
}

function frequentTexts(solved: readonly ScriptedEpisode[]): string[] {
  const counts = new Map<string, number>();
  for (const { content } of solved.flatMap(({ messages }) => saidBy(messages)))
    if (content) counts.set(content, (counts.get(content) ?? 0) + 1);
  const ranked = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  return ranked.slice(0, MOST_TEXTS).map(([text]) => text);
}

/** Three calls of any tools with any values, a function of the seed. */
function randomCalls(tools: readonly ToolSchema[], seed: number): ReturnType<typeof callAll>[] {
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

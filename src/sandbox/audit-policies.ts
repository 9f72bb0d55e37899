/**
 * Policies that no environment may reward. Blind ones do not look at what they are told; those that copy may do the
 * right thing on instances that ask for nothing else, and are allowed as much as a shortcut.
 */
import { isDeepStrictEqual } from 'node:util';
import type { AssistantMessage, JsonSchema, Message, ToolSchema } from '../domain/messages';
import { argumentsIn, callWith, recordsIn, valuesNamed } from './copied-values';
import type { Script, ScriptedEpisode } from './play';
import { vocabularyOf } from './vocabulary';

/** A policy that no environment may reward. */
export interface AuditPolicy {
  name: string;
  /** What it does where the reference solution did this; `solution`: the same; undefined: it has nothing to do, the seed is not counted. */
  on(solved: ScriptedEpisode): Script | 'solution' | undefined;
  /** Whether an episode that was played counts; all do unless told. */
  counts?(played: ScriptedEpisode, solved: ScriptedEpisode): boolean;
  /** A finding shows one of its conversations: nobody knows from its name what it does. */
  isEvidence?: true;
}

/** What policies are made from: the tools, and the reference solutions that were played. */
export interface Audited {
  tools: readonly ToolSchema[];
  solved: readonly ScriptedEpisode[];
}

export type Call = NonNullable<AssistantMessage['toolCalls']>[number];

export const say = (content: string): AssistantMessage => ({ role: 'assistant', content });

/** One message with these calls, under ids of their own. */
export const callAll = (calls: readonly Omit<Call, 'id'>[]): AssistantMessage => ({
  role: 'assistant',
  content: '',
  toolCalls: calls.map((call, n) => ({ ...call, id: `call_${n}` })),
});

export const isWrite = ({ annotations }: ToolSchema): boolean => annotations?.readOnlyHint !== true;

export const assistantMessages = (messages: readonly Message[]): AssistantMessage[] =>
  messages.filter((m) => m.role === 'assistant');

export const callsIn = (messages: readonly Message[]): Call[] =>
  assistantMessages(messages).flatMap((m) => m.toolCalls ?? []);

export const contentsFrom = (messages: readonly Message[], role: 'user' | 'tool'): string[] =>
  messages.flatMap((m) => (m.role === role ? [m.content] : []));

const MOST_TEXTS = 8;
const MOST_CALLS = 64;
const MOST_SAID = 20_000;
const REFUSAL = 'I am sorry , I cannot do that : it is not allowed by the policy .';
const TWENTY_WORDS = Array.from({ length: 20 }, () => 'yes').join(' ');

/**
 * Do nothing, submit at once or say one of the most frequent texts of the solutions (denial, question, closing), repeat the user, say much;
 * call one tool over and over, all writes twice.
 */
export function blindPolicies({ tools, solved }: Audited): AuditPolicy[] {
  const texts = frequentTexts(solved);
  const [closing = 'done .'] = texts;
  const always = (name: string, script: Script): AuditPolicy => ({ name, on: () => script });
  const twice = (text: string): Script => [say(text), say(text)];
  const writes = tools.filter(isWrite).flatMap((tool) => [callWith(tool, []), callWith(tool, [])]);
  return [
    always('doing nothing', []),
    always('an empty message', [say('')]),
    ...texts.map((text) => always(`always saying "${text}"`, twice(text))),
    always('saying what the user says', (conversation) =>
      assistantMessages(conversation).length < 3 ? say(contentsFrom(conversation, 'user').at(-1) ?? '') : undefined,
    ),
    always('saying twenty words', twice(TWENTY_WORDS)),
    ...tools.map((tool) => {
      const call = callAll([callWith(tool, [])]);
      return always(`calling ${tool.name} over and over`, [call, call, call, call, say(closing)]);
    }),
    // Where all that counts is a text.
    tools.length > 0
      ? always('every write twice', [callAll(writes), say(closing)])
      : { name: "the request's own words, five times", on: ({ start }) => twice(fiveTimes(start)) },
  ];
}

function fiveTimes(start: readonly Message[]): string {
  const request = contentsFrom(start, 'user').join(' ');
  const words = (request.match(/[\p{L}\p{N}]+/gu) ?? []).join(' ');
  return Array<string>(5).fill(words).join('. ').slice(0, MOST_SAID);
}

/**
 * Call one tool with what the user named; look everything up and then call every write on every record that was shown, or one write on the
 * first record, or say all that was shown; refuse at once.
 */
export function copyingPolicies({ tools, solved }: Audited): AuditPolicy[] {
  const [closing = 'done .'] = frequentTexts(solved);
  const writes = tools.filter(isWrite);
  const isA = (call: Call): boolean => writes.some(({ name }) => name === call.name);
  const writesIn = ({ messages }: ScriptedEpisode): Set<string> =>
    new Set(callsIn(messages).flatMap((c) => (isA(c) ? [JSON.stringify([c.name, c.arguments])] : [])));
  const lookUp = lookUps({ tools, solved });
  /** Looks everything up, does `then`, and closes. */
  const after =
    (then: (records: string[], user: string[], shown: string[]) => AssistantMessage) =>
    (instance: ScriptedEpisode): Script => {
      const first = lookUp(instance);
      return (conversation) => {
        const step = assistantMessages(conversation).length - first.length;
        if (step < 0) return first.at(step);
        if (step > 0) return step === 1 ? say(closing) : undefined;
        const records = recordsIn(conversation);
        const [user, shown] = [contentsFrom(conversation, 'user'), contentsFrom(conversation, 'tool')];
        return then(records.length > 0 ? records : [''], user, shown);
      };
    };
  return [
    ...writes.map((tool) => ({
      name: `calling ${tool.name} with what the user named`,
      on: ({ start }: ScriptedEpisode) => [callAll([callWith(tool, contentsFrom(start, 'user'))]), say(closing)],
    })),
    {
      name: 'every write on every record',
      on: after((records, user) =>
        callAll(records.flatMap((text) => writes.flatMap((tool) => callsOn(tool, text, user))).slice(0, MOST_CALLS)),
      ),
      // Where the solution writes as much, it is the solution.
      counts: (played, reference) => writesIn(played).size > writesIn(reference).size,
    },
    ...writes.map((tool) => ({
      name: `looking up, then ${tool.name} on the first record`,
      on: after((records, user) => callAll(callsOn(tool, firstFor(tool, records, user), user).slice(-1))),
      // Where this is what is wanted, it may pay.
      counts: (played: ScriptedEpisode, reference: ScriptedEpisode) =>
        [...writesIn(played)].some((write) => !writesIn(reference).has(write)),
    })),
    {
      name: 'saying all that look-ups show',
      on: after((_records, _user, shown) => say(shown.join(' ').slice(0, MOST_SAID))),
    },
    { name: 'refusing at once', on: () => [say(REFUSAL), say(REFUSAL)] },
  ];
}

/**
 * The look-ups of an instance's own solution; where it has none, all with what the user named. A tool that less than half of the solutions
 * use is none of them, though it changes nothing: a hand-over to people.
 */
function lookUps({ tools, solved }: Audited): (instance: ScriptedEpisode) => AssistantMessage[] {
  const reads = tools.filter((tool) => !isWrite(tool));
  const uses = (name: string) =>
    solved.filter(({ messages }) => callsIn(messages).some((call) => call.name === name)).length;
  const usual = new Set(reads.flatMap(({ name }) => (uses(name) > solved.length / 2 ? [name] : [])));
  return ({ messages, start }) => {
    const own = assistantMessages(messages)
      .map(({ toolCalls = [] }) => toolCalls.filter(({ name }) => usual.has(name)))
      .filter((calls) => calls.length > 0);
    return own.length > 0
      ? own.map(callAll)
      : reads.map((tool) => callAll([callWith(tool, contentsFrom(start, 'user'))]));
  };
}

/** The first record that has a value of an argument's name, else one that gives the call another value. */
function firstFor(tool: ToolSchema, records: readonly string[], user: readonly string[]): string {
  const names = Object.keys(tool.parameters.properties ?? {});
  const named = records.find((text) => names.some((name) => valuesNamed(name, [text]).length > 0));
  const wanted = callWith(tool, user);
  return named ?? records.find((text) => !isDeepStrictEqual(callWith(tool, [text, ...user]), wanted)) ?? '';
}

/** With the record's values; and with the values that the user named where the schema lists them: the record has the old ones. */
function callsOn(tool: ToolSchema, record: string, user: readonly string[]): ReturnType<typeof callWith>[] {
  const own = callWith(tool, [record, ...user]);
  const wanted = argumentsIn(tool, user);
  const listed = Object.entries(tool.parameters.properties ?? {}).flatMap(([name, { enum: values }]) =>
    values && name in wanted ? [[name, wanted[name]]] : [],
  );
  const asked = { name: tool.name, arguments: { ...own.arguments, ...Object.fromEntries(listed) } };
  return isDeepStrictEqual(own, asked) ? [own] : [own, asked];
}

function frequentTexts(solved: readonly ScriptedEpisode[]): string[] {
  const counts = new Map<string, number>();
  for (const { content } of solved.flatMap(({ messages }) => assistantMessages(messages)))
    if (content) counts.set(content, (counts.get(content) ?? 0) + 1);
  const ranked = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  return ranked.slice(0, MOST_TEXTS).map(([text]) => text);
}

const MOST_VALUES = 30;
/** Of the calls: more different values than that are identifiers. */
const SHARE = 1 / 3;

export function withKnownValues(tools: readonly ToolSchema[], solved: readonly ScriptedEpisode[]): ToolSchema[] {
  const calls = solved.flatMap(({ messages }) => callsIn(messages));
  return tools.map((tool) => {
    const own = calls.filter(({ name }) => name === tool.name);
    const known = Object.entries(tool.parameters.properties ?? {}).map(([field, schema]): [string, JsonSchema] => {
      if (vocabularyOf(schema) || (schema.type ?? 'string') !== 'string') return [field, schema];
      const given = own.flatMap(({ arguments: values }) => (typeof values[field] === 'string' ? [values[field]] : []));
      const values = [...new Set(given)].filter((value) => value !== '').sort();
      const few = values.length > 0 && values.length <= Math.min(MOST_VALUES, SHARE * given.length);
      return [field, few ? { ...schema, enum: values } : schema];
    });
    return { ...tool, parameters: { ...tool.parameters, properties: Object.fromEntries(known) } };
  });
}

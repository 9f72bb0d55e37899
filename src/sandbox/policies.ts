/**
 * Policies that no environment may reward. Some ignore all messages; some copy from them without understanding; some
 * repeat the reference solutions with one error.
 */
import { isDeepStrictEqual } from 'node:util';
import { countsOf, groupBy } from '../domain/statistics';
import {
  type AssistantMessage,
  callAll,
  type JsonSchema,
  type Message,
  type NewCall,
  say,
  type ToolCall,
  type ToolSchema,
} from '../domain/messages';
import {
  argumentsIn,
  assistantMessages,
  callsIn,
  callWith,
  contentsFrom,
  isWrite,
  recordsIn,
  valuesNamed,
} from './conversation';
import type { Script, ScriptedEpisode } from './module';
import { quoted } from './limits';
import { vocabularyOf } from './vocabulary';

/** Share of successes and mean reward, each to stay below. */
export interface Limits {
  success: number;
  reward: number;
}
const BLIND: Limits = { success: 0.25, reward: 0.3 };
/** Limits for shortcuts, for policies that copy, and for policies that always take one branch of the solutions: half the instances, plus slack for 102 seeds. */
export const SHORTCUT: Limits = { success: 0.55, reward: 0.7 };
/** Limits for solutions with a wrong value, on the instances where it is wrong. */
const CHANGED: Limits = { success: 0.5, reward: 0.7 };

export interface AuditPolicy {
  name: string;
  limits: Limits;
  /** Returns its script for an instance; `solution` if it acts like the reference solution; undefined if it has nothing to do and the seed is not counted. */
  on(solved: ScriptedEpisode): Script | 'solution' | undefined;
  /** Returns true if a played episode counts. If absent, all count. */
  counts?(played: ScriptedEpisode, solved: ScriptedEpisode): boolean;
  /** A finding shows one of its conversations, because its name does not describe what it does. */
  isEvidence?: true;
}

const twice = (text: string): Script => [say(text), say(text)];

/** The tools and the played reference solutions, from which policies are made. */
interface Audited {
  tools: readonly ToolSchema[];
  solved: readonly ScriptedEpisode[];
  writes: readonly ToolSchema[];
  writesBy(call: NewCall): boolean;
  texts: readonly string[];
  closing: string;
}

const MOST = { texts: 8, calls: 64, chars: 20_000, branches: 4, knownValues: 30 };

function audited(tools: readonly ToolSchema[], solved: readonly ScriptedEpisode[]): Audited {
  const writes = tools.filter(isWrite);
  const names = new Set(writes.map(({ name }) => name));
  const said = solved.flatMap(({ messages }) => assistantMessages(messages).map(({ content }) => content));
  const ranked = [...countsOf(said.filter(Boolean))].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  const texts = ranked.slice(0, MOST.texts).map(([text]) => text);
  return { tools, solved, writes, writesBy: ({ name }) => names.has(name), texts, closing: texts[0] ?? 'done .' };
}

export function auditPolicies(o: { tools: readonly ToolSchema[]; solved: readonly ScriptedEpisode[] }): AuditPolicy[] {
  const plain = audited(o.tools, o.solved);
  const knowing = audited(withKnownValues(o.tools, o.solved), o.solved);
  return [
    ...blindPolicies(plain),
    ...copyingPolicies(knowing),
    ...branchPolicies(knowing),
    ...solutionsWithoutWrites(plain),
    ...changedSolutions(plain),
  ];
}

/** A free argument that has few values in the solutions' calls is taken for one that lists them; more are identifiers. */
export function withKnownValues(tools: readonly ToolSchema[], solved: readonly ScriptedEpisode[]): ToolSchema[] {
  const calls = solved.flatMap(({ messages }) => callsIn(messages));
  return tools.map((tool) => {
    const own = calls.filter(({ name }) => name === tool.name);
    const known = Object.entries(tool.parameters.properties ?? {}).map(([field, schema]): [string, JsonSchema] => {
      if (vocabularyOf(schema) || (schema.type ?? 'string') !== 'string') return [field, schema];
      const given = own.flatMap(({ arguments: values }) => (typeof values[field] === 'string' ? [values[field]] : []));
      const values = [...new Set(given)].filter((value) => value !== '').sort();
      const few = values.length > 0 && values.length <= Math.min(MOST.knownValues, given.length / 3);
      return [field, few ? { ...schema, enum: values } : schema];
    });
    return { ...tool, parameters: { ...tool.parameters, properties: Object.fromEntries(known) } };
  });
}

const REFUSAL = 'I am sorry , I cannot do that : it is not allowed by the policy .';
const TWENTY_WORDS = Array.from({ length: 20 }, () => 'yes').join(' ');

function blindPolicies({ tools, writes, texts, closing }: Audited): AuditPolicy[] {
  const echo: Script = (conversation) =>
    assistantMessages(conversation).length < 3 ? say(contentsFrom(conversation, 'user').at(-1) ?? '') : undefined;
  const scripts: [name: string, script: Script][] = [
    ['doing nothing', []],
    ['an empty message', [say('')]],
    ...texts.map((text): [string, Script] => [`always saying "${text}"`, twice(text)]),
    ['saying what the user says', echo],
    ['saying twenty words', twice(TWENTY_WORDS)],
    ...tools.map((tool): [string, Script] => {
      const call = callAll([callWith(tool, [])]);
      return [`calling ${tool.name} over and over`, [call, call, call, call, say(closing)]];
    }),
  ];
  const policies = scripts.map(([name, script]): AuditPolicy => ({ name, limits: BLIND, on: () => script }));
  const eachTwice = callAll(writes.flatMap((tool) => [callWith(tool, []), callWith(tool, [])]));
  // Without tools a text is all that counts.
  const last: Omit<AuditPolicy, 'limits'> =
    tools.length > 0
      ? { name: 'every write twice', on: () => [eachTwice, say(closing)] }
      : { name: "the request's own words, five times", on: ({ start }) => twice(fiveTimes(start)) };
  return [...policies, { ...last, limits: BLIND }];
}

function fiveTimes(start: readonly Message[]): string {
  const words =
    contentsFrom(start, 'user')
      .join(' ')
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  return Array<string>(5).fill(words.join(' ')).join('. ').slice(0, MOST.chars);
}

/** Policies that copy what they read, some after the look-ups of the solutions. They may succeed on instances that need nothing else. */
function copyingPolicies(audit: Audited): AuditPolicy[] {
  const { writes, closing } = audit;
  const lookUps = lookUpsOf(audit);
  const writesIn = ({ messages }: ScriptedEpisode): Set<string> =>
    new Set(
      callsIn(messages)
        .filter(audit.writesBy)
        .map((call) => JSON.stringify([call.name, call.arguments])),
    );
  /** Looks everything up, does `then`, and closes. */
  const after =
    (then: (shown: { records: string[]; user: string[]; conversation: readonly Message[] }) => AssistantMessage) =>
    (instance: ScriptedEpisode): Script => {
      const first = lookUps(instance);
      return (conversation) => {
        const step = assistantMessages(conversation).length;
        if (step < first.length) return first[step];
        if (step > first.length) return step === first.length + 1 ? say(closing) : undefined;
        const records = recordsIn(conversation);
        const user = contentsFrom(conversation, 'user');
        return then({ records: records.length > 0 ? records : [''], user, conversation });
      };
    };
  const policies: Omit<AuditPolicy, 'limits'>[] = [
    ...writes.map((tool) => ({
      name: `calling ${tool.name} with what the user named`,
      on: ({ start }: ScriptedEpisode) => [callAll([callWith(tool, contentsFrom(start, 'user'))]), say(closing)],
    })),
    {
      name: 'every write on every record',
      on: after(({ records, user }) =>
        callAll(records.flatMap((text) => writes.flatMap((tool) => callsOn(tool, text, user))).slice(0, MOST.calls)),
      ),
      // A policy with no more writes than the solution may be the solution.
      counts: (played, reference) => writesIn(played).size > writesIn(reference).size,
    },
    ...writes.map((tool) => ({
      name: `looking up, then ${tool.name} on the first record`,
      on: after(({ records, user }) => callAll(callsOn(tool, firstFor(tool, records, user), user).slice(-1))),
      // It may succeed on instances where all its writes are wanted.
      counts: (played: ScriptedEpisode, reference: ScriptedEpisode) => {
        const wanted = writesIn(reference);
        return [...writesIn(played)].some((write) => !wanted.has(write));
      },
    })),
    {
      name: 'saying all that look-ups show',
      on: after(({ conversation }) => say(contentsFrom(conversation, 'tool').join(' ').slice(0, MOST.chars))),
    },
    { name: 'refusing at once', on: () => twice(REFUSAL) },
  ];
  return policies.map((policy) => ({ ...policy, limits: SHORTCUT }));
}

/**
 * The look-ups of an instance's own solution; where it has none, all with what the user named. A tool that less than half of the solutions
 * use is none of them, though it changes nothing: a hand-over to people.
 */
function lookUpsOf({ tools, solved }: Audited): (instance: ScriptedEpisode) => AssistantMessage[] {
  const reads = tools.filter((tool) => !isWrite(tool));
  const users = countsOf(solved.flatMap(({ messages }) => [...new Set(callsIn(messages).map(({ name }) => name))]));
  const usual = new Set(reads.map(({ name }) => name).filter((name) => (users.get(name) ?? 0) > solved.length / 2));
  return ({ messages, start }) => {
    const own = assistantMessages(messages)
      .map(({ toolCalls = [] }) => toolCalls.filter(({ name }) => usual.has(name)))
      .filter((calls) => calls.length > 0);
    if (own.length > 0) return own.map(callAll);
    return reads.map((tool) => callAll([callWith(tool, contentsFrom(start, 'user'))]));
  };
}

/** The first record that has a value of an argument's name, else one that gives the call another value. */
function firstFor(tool: ToolSchema, records: readonly string[], user: readonly string[]): string {
  const names = Object.keys(tool.parameters.properties ?? {});
  const named = records.find((text) => names.some((name) => valuesNamed(name, [text]).length > 0));
  const wanted = callWith(tool, user);
  return named ?? records.find((text) => !isDeepStrictEqual(callWith(tool, [text, ...user]), wanted)) ?? '';
}

/** Returns the call with the record's values and, if it differs, the call with the user's values of arguments whose schema lists values: records have the old ones. */
function callsOn(tool: ToolSchema, record: string, user: readonly string[]): NewCall[] {
  const own = callWith(tool, [record, ...user]);
  const wanted = argumentsIn(tool, user);
  const listed = Object.entries(tool.parameters.properties ?? {}).flatMap(([name, { enum: values }]) =>
    values && name in wanted ? [[name, wanted[name]]] : [],
  );
  const asked = { name: tool.name, arguments: { ...own.arguments, ...Object.fromEntries(listed) } };
  return isDeepStrictEqual(own, asked) ? [own] : [own, asked];
}

/** Shares of the solutions: rarer branches are ignored, and rarer words are treated as values of the instance. */
const SHARE = { branch: 0.05, word: 0.1 };

/** Each branch of the solutions on all instances: look up and always refuse, look up and always write, always ask. */
function branchPolicies(audit: Audited): AuditPolicy[] {
  const { solved } = audit;
  const words = countsOf(
    solved.flatMap(({ messages }) => [
      ...new Set(assistantMessages(messages).flatMap(({ content }) => content.split(/\s+/))),
    ]),
  );
  const isValue = (word: string): boolean => (words.get(word) ?? 0) < SHARE.word * solved.length;
  const textOf = (content: string): string =>
    content.replace(/\S+/g, (word) => (isValue(word) ? '*' : word)).replace(/\*(?: \*)+/g, '*');
  const shapeOf = ({ content, toolCalls = [] }: AssistantMessage): string =>
    [...toolCalls.map((call) => kindOf(call, audit)), ...(content ? [`"${textOf(content)}"`] : [])].join(', ');
  const branches = groupBy(solved, (episode) => {
    const shapes = assistantMessages(episode.messages).map(shapeOf);
    // One more page that is read, one more confirmation that is asked for: no choice of the agent's, the conversation is longer.
    return shapes.filter((own, n) => own !== shapes[n - 1] || own.includes(A_WRITE)).join(', ');
  });
  if (branches.size < 2) return [];
  const common = [...branches]
    .filter(([, episodes]) => episodes.length >= SHARE.branch * solved.length)
    .sort(([, a], [, b]) => b.length - a.length);
  return common.slice(0, MOST.branches).map(([shape, episodes]) => {
    const model = assistantMessages(episodes[0]?.messages ?? []);
    const members = new Set(episodes);
    return {
      name: `always the branch "${quoted(shape, 150)}"`,
      limits: SHORTCUT,
      on: (instance) => {
        if (members.has(instance)) return 'solution';
        const own = assistantMessages(instance.messages);
        return (conversation) => {
          const next = model[assistantMessages(conversation).length];
          if (!next) return undefined;
          const same = own.find(({ content }) => content !== '' && textOf(content) === textOf(next.content));
          const content = same?.content ?? next.content;
          if (!next.toolCalls) return say(content);
          return { ...callAll(ownCalls(next.toolCalls, { audit, conversation, instance })), content };
        };
      },
    };
  });
}

const A_WRITE = 'a write';
const kindOf = (call: NewCall, { writesBy }: Audited): string => (writesBy(call) ? A_WRITE : call.name);

/** The calls of another instance's solution, with this one's identifiers: its own call of that kind, else one on what it shows. */
function ownCalls(
  calls: readonly ToolCall[],
  o: { audit: Audited; conversation: readonly Message[]; instance: ScriptedEpisode },
): NewCall[] {
  const { audit, conversation, instance } = o;
  const user = contentsFrom(conversation, 'user');
  const records = byLikeness(recordsIn(conversation), user.join(' '));
  const made: NewCall[] = [...callsIn(conversation)];
  const isNew = (call: NewCall): boolean =>
    !made.some((one) => one.name === call.name && isDeepStrictEqual(one.arguments, call.arguments));
  return calls.flatMap((call) => {
    const sameKind = (other: NewCall): boolean => kindOf(other, audit) === kindOf(call, audit);
    const own = callsIn(instance.messages).filter(sameKind);
    const tool = audit.tools.find(({ name }) => name === call.name);
    const shown = tool ? [...records, ''].map((text) => callWith(tool, [text, ...user])).filter(isNew) : [];
    const wanted = own[made.filter(sameKind).length];
    // Once the solution's own calls of this kind are made, it calls on all other shown records: a tool may refuse one of them.
    const next = wanted ? [wanted] : shown.slice(0, own.length > 0 ? shown.length : 1);
    made.push(...next);
    return next.map(({ name, arguments: given }) => ({ name, arguments: given }));
  });
}

function byLikeness(records: readonly string[], said: string): string[] {
  const words = new Set(said.split(/\W+/));
  const shared = (record: string): number => record.split(/\W+/).filter((word) => words.has(word)).length;
  return [...records].sort((a, b) => shared(b) - shared(a));
}

function solutionsWithoutWrites({ solved, writesBy }: Audited): AuditPolicy[] {
  const writing = solved.filter(({ messages }) => callsIn(messages).some(writesBy));
  if (writing.length === 0) return [];
  const without = ({ toolCalls = [], ...message }: AssistantMessage): AssistantMessage[] => {
    const others = toolCalls.filter((call) => !writesBy(call));
    if (others.length > 0) return [{ ...message, toolCalls: others }];
    return message.content === '' ? [] : [message];
  };
  const on: AuditPolicy['on'] = (instance) =>
    writing.includes(instance) ? assistantMessages(instance.messages).flatMap(without) : 'solution';
  return [{ name: 'the solution without its writes', limits: SHORTCUT, on }];
}

/** The solutions with each argument of their writes changed in turn. */
export function changedSolutions({ writes }: Pick<Audited, 'writes'>): AuditPolicy[] {
  return writes.flatMap((tool) =>
    Object.entries(tool.parameters.properties ?? {}).map(([field, schema]): AuditPolicy => {
      const vocabulary = vocabularyOf(schema);
      const values = vocabulary && [0, -1].map((n) => vocabulary.parts.map((options) => options.at(n) ?? '').join(''));
      const change = (call: ToolCall, messages: readonly Message[]): ToolCall => {
        if (call.name !== tool.name || !(field in call.arguments)) return call;
        const given = call.arguments[field];
        const other = values
          ? values.map((text) => (vocabulary.number ? Number(text) : text)).find((value) => value !== given)
          : otherShown({ field, given, messages });
        return other === undefined ? call : { ...call, arguments: { ...call.arguments, [field]: other } };
      };
      return {
        name: `the solution with another ${field} in ${tool.name}`,
        limits: CHANGED,
        on: ({ messages }) => {
          const script = assistantMessages(messages).map((m) =>
            m.toolCalls ? { ...m, toolCalls: m.toolCalls.map((call) => change(call, messages)) } : m,
          );
          return callsIn(script).some((call, n) => call !== callsIn(messages)[n]) ? script : undefined;
        },
      };
    }),
  );
}

/** For a schema without listed values, returns another identifier or number that was shown under this name; in a list it replaces the first item. */
function otherShown(o: { field: string; given: unknown; messages: readonly Message[] }): unknown {
  const own = [o.given].flat();
  const other = valuesNamed(o.field, contentsFrom(o.messages, 'tool')).find(
    (value) => /\d/.test(String(value)) && !own.includes(value),
  );
  return other !== undefined && Array.isArray(o.given) ? [other, ...own.slice(1)] : other;
}

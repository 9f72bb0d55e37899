/**
 * Policies made of the reference solutions: one branch of them everywhere, without their writes, or with other values.
 */
import { isDeepStrictEqual } from 'node:util';
import type { AssistantMessage, Message, ToolSchema } from '../domain/messages';
import {
  assistantMessages,
  type Audited,
  type AuditPolicy,
  type Call,
  callAll,
  callsIn,
  contentsFrom,
  isWrite,
} from './audit-policies';
import { callWith, recordsIn, valuesNamed } from './copied-values';
import { quoted } from './limits';
import type { ScriptedEpisode } from './play';
import { type Vocabulary, vocabularyOf } from './vocabulary';

const MOST_BRANCHES = 4;
/** Of the solutions: a rarer branch is not taken for one, and a rarer word is a value of the instance. */
const SHARE = { branch: 0.05, word: 0.1 };

/** Each branch of the solutions on all instances: look up and always refuse, look up and always write, always ask. */
export function branchPolicies({ tools, solved }: Audited): AuditPolicy[] {
  const writes = new Set(tools.filter(isWrite).map(({ name }) => name));
  const isValue = rareWords(solved);
  const textOf = (content: string): string =>
    content.replace(/\S+/g, (word) => (isValue(word) ? '*' : word)).replace(/\*(?: \*)+/g, '*');
  const shapeOf = ({ content, toolCalls = [] }: AssistantMessage): string =>
    [
      ...toolCalls.map(({ name }) => (writes.has(name) ? 'a write' : name)),
      ...(content ? [`"${textOf(content)}"`] : []),
    ].join(', ');
  const branches = new Map<string, ScriptedEpisode[]>();
  for (const episode of solved) {
    const shapes = assistantMessages(episode.messages).map(shapeOf);
    // One more page that is read, one more confirmation that is asked for: no choice of the agent's, the conversation is longer.
    const shape = shapes.filter((own, n) => own !== shapes[n - 1] || own.includes('a write')).join(', ');
    branches.set(shape, [...(branches.get(shape) ?? []), episode]);
  }
  const common = [...branches].filter(([, episodes]) => episodes.length >= SHARE.branch * solved.length);
  if (branches.size < 2) return [];
  common.sort(([, a], [, b]) => b.length - a.length);

  return common.slice(0, MOST_BRANCHES).map(([shape, episodes]) => {
    const model = assistantMessages(episodes[0]?.messages ?? []);
    const members = new Set(episodes);
    return {
      name: `always the branch "${quoted(shape, 150)}"`,
      on: (instance) => {
        if (members.has(instance)) return 'solution';
        const own = assistantMessages(instance.messages);
        return (conversation) => {
          const next = model[assistantMessages(conversation).length];
          if (!next) return undefined;
          const same = own.find(({ content }) => content !== '' && textOf(content) === textOf(next.content));
          const content = same?.content ?? next.content;
          if (!next.toolCalls) return { role: 'assistant', content };
          return { ...callAll(ownCalls({ calls: next.toolCalls, tools, writes, conversation, instance })), content };
        };
      },
    };
  });
}

/** The calls of another instance's solution, with this one's identifiers: its own call of that kind, else one on what it shows. */
function ownCalls(o: {
  calls: readonly Call[];
  tools: readonly ToolSchema[];
  writes: ReadonlySet<string>;
  conversation: readonly Message[];
  instance: ScriptedEpisode;
}): Omit<Call, 'id'>[] {
  const kind = (call: Omit<Call, 'id'>): string => (o.writes.has(call.name) ? '' : call.name);
  const user = contentsFrom(o.conversation, 'user');
  const records = byLikeness(recordsIn(o.conversation), user.join(' '));
  const made: Omit<Call, 'id'>[] = [...callsIn(o.conversation)];
  const isNew = (call: Omit<Call, 'id'>): boolean =>
    !made.some(({ name, arguments: given }) => isDeepStrictEqual([name, given], [call.name, call.arguments]));
  return o.calls.flatMap((call) => {
    const earlier = made.filter((c) => kind(c) === kind(call)).length;
    const own = callsIn(o.instance.messages).filter((c) => kind(c) === kind(call));
    const tool = o.tools.find(({ name }) => name === call.name);
    const shown = tool ? [...records, ''].map((text) => callWith(tool, [text, ...user])).filter(isNew) : [];
    const asked = own[earlier];
    // Where all that was asked for is done, on whatever else there is: a tool may refuse one of the records.
    const next = asked ? [asked] : shown.slice(0, own.length > 0 ? shown.length : 1);
    made.push(...next);
    return next.map(({ name, arguments: given }) => ({ name, arguments: given }));
  });
}

/** First those that share most words with what the user said. */
function byLikeness(records: readonly string[], said: string): string[] {
  const words = new Set(said.split(/\W+/));
  const shared = (record: string): number => record.split(/\W+/).filter((word) => words.has(word)).length;
  return [...records].sort((a, b) => shared(b) - shared(a));
}

/** Words that few solutions say: values of their instances. */
function rareWords(solved: readonly ScriptedEpisode[]): (word: string) => boolean {
  const counts = new Map<string, number>();
  for (const { messages } of solved)
    for (const word of new Set(assistantMessages(messages).flatMap(({ content }) => content.split(/\s+/))))
      counts.set(word, (counts.get(word) ?? 0) + 1);
  return (word) => (counts.get(word) ?? 0) < SHARE.word * solved.length;
}

const writesIn = ({ tools }: Audited) => {
  const writes = tools.filter(isWrite);
  return { writes, isA: ({ name }: Call): boolean => writes.some((tool) => tool.name === name) };
};

/** The solutions with their writes left out. */
export function solutionsWithoutWrites(audited: Audited): AuditPolicy[] {
  const { isA } = writesIn(audited);
  if (!audited.solved.some(({ messages }) => callsIn(messages).some(isA))) return [];
  const without = (messages: readonly Message[]) =>
    assistantMessages(messages).flatMap((message) => withCalls(message, (call) => !isA(call)));
  const on: AuditPolicy['on'] = ({ messages }) => (callsIn(messages).some(isA) ? without(messages) : 'solution');
  return [{ name: 'the solution without its writes', on }];
}

/** The solutions with each argument of their writes changed in turn. */
export function changedSolutions(audited: Audited): AuditPolicy[] {
  const { writes, isA } = writesIn(audited);
  if (!audited.solved.some(({ messages }) => callsIn(messages).some(isA))) return [];
  return writes.flatMap((tool) =>
    Object.entries(tool.parameters.properties ?? {}).map(([field, schema]): AuditPolicy => {
      const vocabulary = vocabularyOf(schema);
      const values = vocabulary && [
        valueOf(vocabulary, (options) => options[0] ?? ''),
        valueOf(vocabulary, (options) => options.at(-1) ?? ''),
      ];
      const change = (call: Call, messages: readonly Message[]): Call => {
        if (call.name !== tool.name || !(field in call.arguments)) return call;
        const given = call.arguments[field];
        const other = values ? values.find((value) => value !== given) : otherShown({ field, given, messages });
        return other === undefined ? call : { ...call, arguments: { ...call.arguments, [field]: other } };
      };
      return {
        name: `the solution with another ${field} in ${tool.name}`,
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

const valueOf = ({ number, parts }: Vocabulary, option: (options: readonly string[]) => string): string | number => {
  const text = parts.map(option).join('');
  return number ? Number(text) : text;
};

/** Where the schema lists no values: another identifier or number that stands under this name in what was shown; a list begins with it. */
function otherShown(o: { field: string; given: unknown; messages: readonly Message[] }): unknown {
  const own = [o.given].flat();
  const other = valuesNamed(o.field, contentsFrom(o.messages, 'tool')).find(
    (value) => /\d/.test(String(value)) && !own.includes(value),
  );
  return other !== undefined && Array.isArray(o.given) ? [other, ...own.slice(1)] : other;
}

/** The message with these of its calls; none if it is empty then. */
function withCalls(message: AssistantMessage, wanted: (call: Call) => boolean): AssistantMessage[] {
  const calls = message.toolCalls?.filter(wanted) ?? [];
  if (calls.length > 0) return [{ ...message, toolCalls: calls }];
  return message.content === '' ? [] : [{ role: 'assistant', content: message.content }];
}

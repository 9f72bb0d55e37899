/** What the self-test plays against a module besides its reference solutions, and what all of these are made from. */
import type { AssistantMessage, Message, ToolSchema } from '../domain/messages';
import { valuesIn } from './records';
import type { Script, ScriptedEpisode } from './scripted-episode';
import { vocabularyOf, type Vocabulary } from './vocabulary';

export interface Limits {
  /** Share of successes and mean reward, each to stay below. */
  success: number;
  reward: number;
}

/** A policy that no environment may reward. */
export interface AuditPolicy {
  name: string;
  limits: Limits;
  /** What it does where the reference solution did this; `solution`: the same; undefined: it has nothing to do, the seed is not counted. */
  on(solved: ScriptedEpisode): Script | 'solution' | undefined;
  /** Whether an episode that was played counts; all do unless told. */
  counts?(played: ScriptedEpisode, solved: ScriptedEpisode): boolean;
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

export const saidBy = (messages: readonly Message[]): AssistantMessage[] =>
  messages.filter((m) => m.role === 'assistant');

export const callsIn = (messages: readonly Message[]): Call[] => saidBy(messages).flatMap((m) => m.toolCalls ?? []);

export const heardFrom = (messages: readonly Message[], role: 'user' | 'tool'): string[] =>
  messages.flatMap((m) => (m.role === role ? [m.content] : []));

/** The value of one option of each part, as an argument. */
export const valueOf = (
  { number, parts }: Vocabulary,
  option: (options: readonly string[]) => string,
): string | number => {
  const text = parts.map(option).join('');
  return number ? Number(text) : text;
};

/**
 * A call whose arguments are copied from the first text that holds a fitting value, else the first value that the schema allows. A free
 * text is the last of the words with a digit.
 */
export function callWith(tool: ToolSchema, texts: readonly string[]): Omit<Call, 'id'> {
  const given = Object.entries(tool.parameters.properties ?? {}).map(([name, schema]) => {
    const vocabulary = vocabularyOf(schema);
    if (!vocabulary) return [name, texts.flatMap((text) => text.match(/\w*\d\w*/g) ?? []).at(-1) ?? ''];
    const [found] = texts.flatMap((text) => valuesIn(schema, text.slice(0, 2_000)));
    return [
      name,
      found === undefined ? valueOf(vocabulary, ([first]) => first ?? '') : vocabulary.number ? Number(found) : found,
    ];
  });
  return { name: tool.name, arguments: Object.fromEntries(given) };
}

/** Records of the observations, at most eight: the last ones. */
export const recordsIn = (messages: readonly Message[]): string[] =>
  heardFrom(messages, 'tool')
    .flatMap((content) => content.slice(0, 5_000).split(' ; '))
    .slice(-8);

/** What the self-test plays against a module besides its reference solutions, and what all of these are made from. */
import type { AssistantMessage, Message, ToolSchema } from '../domain/messages';
import type { Script, ScriptedEpisode } from './play';
import type { Vocabulary } from './vocabulary';

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
  /** A finding shows one of its conversations: nobody knows from its name what it does. */
  isEvidence?: true;
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

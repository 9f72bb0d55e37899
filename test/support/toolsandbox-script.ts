/**
 * What the scripts of the imperfect ToolSandbox agent are made of. Invariant: a step depends on what the tools have answered, and on nothing
 * else, so that the same scenario gives the same conversation.
 */
import type { AssistantMessage } from '../../src/domain/messages';

/** Which skill the agent lacks in a rollout, with how often it is drawn where there is an occasion. */
export const MISTAKES = {
  /** Gives up when a tool is refused because a service is off that it could turn on. */
  enable_services: 3,
  /** Makes up what nobody has said and no tool of its own can tell. */
  admit_missing: 3,
  /** Reckons times by itself, and wrongly, in place of converting them with the tools. */
  convert_times: 3,
  /** Takes another record than the one that was asked for from those that it found. */
  choose_record: 3,
  /** Does a thing for the first of several and says that it is done for all. */
  cover_all: 1,
} as const;
export type Mistake = keyof typeof MISTAKES;
export const mistakes = Object.keys(MISTAKES) as Mistake[];

/** `results`: what the tools have answered, in order. */
export type Step = (results: string[]) => AssistantMessage;

export interface Script {
  agent: Step[];
  /** What the user says, in order; then it ends the conversation. */
  user: string[];
}

export interface Scene {
  /** Mistakes that can be made, in the order in which there is an occasion. */
  occasions: Mistake[];
  /** `pick` draws among wordings. */
  script(o: { mistake: Mistake | undefined; pick: (words: readonly string[]) => string }): Script;
}

type Values = Record<string, unknown>;

/** `values` may look at what the tools have answered. */
export const call =
  (name: string, values: Values | ((results: string[]) => Values)): Step =>
  (results) => ({
    role: 'assistant',
    content: '',
    toolCalls: [
      { id: `call_${results.length}`, name, arguments: typeof values === 'function' ? values(results) : values },
    ],
  });

export const say =
  (content: string | ((results: string[]) => string)): Step =>
  (results) => ({ role: 'assistant', content: typeof content === 'function' ? content(results) : content });

/** The last result that is a number alone. */
export const numberIn = (results: string[]): number => Number(results.findLast((one) => /^\d+(\.\d+)?$/.test(one)));

/** A field of the record that holds `words`, in the last result that does. ToolSandbox's console prints records as Python does. */
export function fieldOf(results: string[], words: string, field: string): string {
  for (const result of results.toReversed()) {
    const record = result.match(/\{[^{}]*\}/g)?.find((one) => one.includes(words));
    const [, value] = record?.match(new RegExp(`'${field}': '([^']*)'`)) ?? [];
    if (value !== undefined) return value;
  }
  throw new Error(`no result has a record with "${words}" and the field ${field}:\n${results.join('\n')}`);
}

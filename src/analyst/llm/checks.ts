/** What answers are held against. Invariant: a defect names the place, the value and what would be right, in words for the model that mends it. */
import type { z } from 'zod';
import { capabilityNameSchema } from '../../domain/capability';
import type { ScoredRollout } from '../../domain/rollout';
import type { Read } from '../../language-model/answer';

/** Defects that one answer is sent back with: more say nothing new. */
const MOST_DEFECTS = 30;
export const LONGEST_DEFINITION = 800;

export function bounded(defects: readonly string[]): string[] {
  if (defects.length <= MOST_DEFECTS) return [...defects];
  return [
    ...defects.slice(0, MOST_DEFECTS),
    `and ${defects.length - MOST_DEFECTS} more of this kind: check the whole answer`,
  ];
}

export const shapeDefects = ({ issues }: z.ZodError): string[] =>
  bounded(issues.map(({ path, message }) => `${path.join('.') || 'the answer'}: ${message}`));

export interface Named {
  name: string;
  definition: string;
}

/** Of a list of capabilities; `at` is its field. */
export function capabilityDefects(o: {
  capabilities: readonly Named[];
  at: string;
  maxCandidates: number;
  shownText: ShownText;
}): string[] {
  const { capabilities, at, maxCandidates, shownText } = o;
  const { length } = capabilities;
  return [
    ...(length > maxCandidates
      ? [`${at} has ${length} entries; at most ${maxCandidates} are wanted: merge or drop`]
      : []),
    ...capabilities.flatMap((capability, n) => [
      ...nameDefects({ capabilities, n, at: `${at}.${n}.name` }),
      ...definitionDefects(capability.definition, `${at}.${n}.definition`, shownText),
    ]),
  ];
}

function nameDefects({ capabilities, n, at }: { capabilities: readonly Named[]; n: number; at: string }): string[] {
  const { name } = capabilities[n] as Named;
  const first = capabilities.findIndex((other) => other.name === name);
  if (first < n)
    return [`${at} is "${name}", as that of entry ${first}; each skill is named once: merge the two, or rename one`];
  const { error } = capabilityNameSchema.safeParse(name);
  return error ? [`${at} is "${name}": ${error.issues[0]?.message} of letters a-z`] : [];
}

/** What a definition must not repeat. */
export interface ShownText {
  /** The trajectories as they were shown. */
  trajectories: string;
  tools: readonly string[];
}

function definitionDefects(definition: string, at: string, { trajectories, tools }: ShownText): string[] {
  const value = valueIn(definition, trajectories);
  const tool = tools.find((name) => /[_A-Z]/.test(name.slice(1)) && wordsOf(definition).includes(name));
  return [
    ...(definition.length > LONGEST_DEFINITION
      ? [`${at} has ${definition.length} characters; at most ${LONGEST_DEFINITION}, in 2 or 3 sentences`]
      : []),
    ...(value === undefined ? [] : [`${at} holds "${value}", a value of a task; say the skill without any`]),
    ...(tool === undefined
      ? []
      : [`${at} names the tool ${tool}; say the skill so that it holds where tools have other names`]),
  ];
}

const wordsOf = (text: string): string[] => text.match(/[\p{L}\p{N}_@#$.+-]*[\p{L}\p{N}_]/gu) ?? [];

/** An address, anything with three digits, or what mixes letters and digits and stands in a trajectory. */
const valueIn = (definition: string, trajectories: string): string | undefined =>
  wordsOf(definition).find(
    (word) =>
      /\w@\w/.test(word) ||
      (word.match(/\d/g) ?? []).length >= 3 ||
      (/\d/.test(word) && /\p{L}/u.test(word) && trajectories.includes(word)),
  );

/** Whether a step can be cited: a message that was shown of a rollout that was shown. `rollouts` by the ids that the model knows. */
export function stepDefect(
  { rollout: id, message }: { rollout: string; message: number },
  rollouts: ReadonlyMap<string, ScoredRollout>,
): string | undefined {
  const rollout = rollouts.get(id);
  if (!rollout) return `there is no trajectory "${id}" here; the ids are ${[...rollouts.keys()].join(', ')}`;
  const found = rollout.messages[message];
  if (found && found.role !== 'system') return undefined;
  const shown = rollout.messages.flatMap(({ role }, n) => (role === 'system' ? [] : [n]));
  const known = shown.length === 0 ? 'none' : `${shown[0]} to ${shown.at(-1)}`;
  return found
    ? `${id}.${message} is the policy, which is no part of the trajectory; its messages are ${known}`
    : `${id} has no message ${message}; its messages are ${known}`;
}

/** The number of a message that an answer names at `at`; it may be written as in the trajectory, `r1.7`. */
export function messageIn(o: {
  rollout: string;
  place: unknown;
  at: string;
  rollouts: ReadonlyMap<string, ScoredRollout>;
}): Read<number> {
  const { rollout, place, at, rollouts } = o;
  const message = typeof place === 'string' ? Number(place.replace(`${rollout}.`, '') || NaN) : place;
  if (typeof message !== 'number' || !Number.isInteger(message))
    return {
      defects: [`${at} hangs on the message ${JSON.stringify(place)}; give the number of a message of ${rollout}`],
    };
  const defect = stepDefect({ rollout, message }, rollouts);
  return defect === undefined ? { value: message } : { defects: [`${at}: ${defect}`] };
}

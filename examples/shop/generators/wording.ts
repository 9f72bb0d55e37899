/**
 * Collects phrases of the shop's users from rollouts. No value of a rollout gets out: first messages are reduced to skeletons of slots, and one in
 * which anything is left over that a schema could have produced is dropped.
 */
import { type Message, type Vocabulary, vocabularyOf } from 'trace-campaign/plugin';
import { FIELDS, TEXTS } from '../target/tasks';
import { world } from './world';

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** Returns the source of a regular expression that matches the vocabulary's values. */
const expressionOf = ({ parts }: Pick<Vocabulary, 'parts'>): string =>
  parts.map((options) => `(?:${options.map(escaped).join('|')})`).join('');

export interface Wording {
  /** Such as "{key} {request} and {request} , {marker} . {question}"; the most frequent first. */
  skeletons: string[];
  done: string;
  unknownTool: string;
  badArguments: string;
  /** Look-up of a key that is not there; write on a record that is not there. */
  unknownKey: string;
  unknownRecord: string;
  farewell: string;
}

const MOST_SKELETONS = 40;

/** Reads the wording off conversations in the shop (its train split only). */
export function wordingOf(conversations: readonly (readonly Message[])[]): Wording {
  const counts = new Map<string, number>();
  const shown = new Set<string>();
  for (const messages of conversations) {
    const first = messages.find(({ role }) => role === 'user');
    const skeleton = first && skeletonOf(first.content);
    if (skeleton) counts.set(skeleton, (counts.get(skeleton) ?? 0) + 1);
    for (const { role, content } of messages) if (role !== 'assistant') shown.add(content);
  }
  const ranked = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([text]) => text);
  // General words replace texts that no conversation shows.
  const orElse = (text: string, general: string): string => (shown.has(text) ? text : general);
  return {
    skeletons: ranked.slice(0, MOST_SKELETONS),
    done: TEXTS.ok,
    unknownTool: TEXTS.unknownTool,
    badArguments: TEXTS.badArguments,
    unknownKey: orElse(TEXTS.unknownAccount, 'error : not found'),
    unknownRecord: orElse(TEXTS.unknownItem, 'error : not found'),
    farewell: orElse(TEXTS.bye, 'thanks .'),
  };
}

const vocabularies = Object.values(FIELDS).map((schema) => vocabularyOf(schema)!);

/** A regular expression's source for `text`, in which any value of a field can take the place of its slot. */
const filled = (text: string): string =>
  text
    .split(/\{(\w+)\}/)
    .map((part, n) => (n % 2 === 0 ? escaped(part) : expressionOf(vocabularyOf(FIELDS[part as 'item' | 'city'])!)))
    .join('');

const replacements = [
  [
    TEXTS.account('%')
      .split('%')
      .map(escaped)
      .join(expressionOf(vocabularyOf(FIELDS.user)!)),
    '{key}',
  ],
  [filled(TEXTS.howMuch('{item}')), '{question}'],
  [escaped(TEXTS.opened), '{marker}'],
  ...world.writes.map(({ request }) => [filled(request), '{request}']),
].map(([source, slot]) => [new RegExp(source!, 'g'), slot!] as const);

const values = new Set(vocabularies.flatMap(({ parts }) => parts.flat()).filter((w) => /^[a-z]{2,}$/i.test(w)));

/** Turns a first message into its skeleton; undefined if a number or a word of a vocabulary is left in it. */
function skeletonOf(message: string): string | undefined {
  const skeleton = replacements.reduce((text, [expression, slot]) => text.replace(expression, slot), message);
  const rest = skeleton.replace(/\{\w+\}/g, ' ');
  const left = /\d/.test(rest) || (rest.match(/[a-z]+/gi) ?? []).some((word) => values.has(word));
  return left || !skeleton.includes('{request}') ? undefined : skeleton;
}

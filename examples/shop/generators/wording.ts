/**
 * How the target's users and tools put things, read off its rollouts. No value of a rollout gets out: messages are
 * reduced to skeletons of slots, and one in which anything is left over that a schema could have produced is dropped.
 */
import {
  type EnvironmentDescription,
  escaped,
  expressionOf,
  type JsonSchema,
  type Message,
  type Vocabulary,
  vocabularyOf,
} from 'campaign/plugin';
import { slotsOf, type World } from './world';

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

const DEFAULTS: Omit<Wording, 'skeletons'> = {
  done: 'ok',
  unknownTool: 'error : unknown tool',
  badArguments: 'error : bad arguments',
  unknownKey: 'error : not found',
  unknownRecord: 'error : not found',
  farewell: 'thanks .',
};

/** Reads the wording off conversations with the target (its train split only). */
export function wordingOf(o: {
  conversations: readonly (readonly Message[])[];
  description: EnvironmentDescription;
  world: World;
}): Wording {
  const counts = new Map<string, Map<string, number>>();
  const seen = (what: string, text: string | undefined): void => {
    if (text === undefined || text.trim() === '') return;
    const texts = counts.get(what) ?? new Map<string, number>();
    counts.set(what, texts.set(text, (texts.get(text) ?? 0) + 1));
  };
  const abstract = skeletonMaker(o.world);
  for (const messages of o.conversations) {
    const first = messages.find((m) => m.role === 'user');
    if (first) seen('skeletons', abstract(first.content));
    const last = messages.at(-1);
    if (last?.role === 'user' && last !== first) seen('farewell', last.content);
    for (const { kind, content } of observations(messages, o)) seen(kind, content);
  }
  const ranked = (what: string): string[] =>
    [...(counts.get(what) ?? [])].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).map(([text]) => text);
  const single = Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[];
  return {
    skeletons: ranked('skeletons').slice(0, 40),
    ...DEFAULTS,
    ...Object.fromEntries(
      single.flatMap((what) =>
        ranked(what)
          .slice(0, 1)
          .map((text) => [what, text]),
      ),
    ),
  };
}

/** Tool results that are short texts instead of records, by what they answer. */
function* observations(
  messages: readonly Message[],
  { description, world }: { description: EnvironmentDescription; world: World },
): Generator<{ kind: keyof typeof DEFAULTS; content: string }> {
  const calls = new Map(
    messages.flatMap((m) => (m.role === 'assistant' ? (m.toolCalls ?? []) : [])).map((c) => [c.id, c]),
  );
  for (const message of messages) {
    if (message.role !== 'tool') continue;
    const { content, toolCallId } = message;
    const call = calls.get(toolCallId);
    if (!call || /\d/.test(content)) continue;
    const tool = description.tools.find((t) => t.name === call.name);
    const failed = /error|unknown|invalid|not found/i.test(content);
    if (!tool) yield { kind: 'unknownTool', content };
    else if (!failed && world.writes.some((w) => w.tool === tool.name)) yield { kind: 'done', content };
    else if (failed && !fits(call.arguments, tool.parameters.properties ?? {})) yield { kind: 'badArguments', content };
    else if (failed && tool.name === world.lookup.tool) yield { kind: 'unknownKey', content };
    else if (failed && world.writes.some((w) => w.tool === tool.name && w.onRecord))
      yield { kind: 'unknownRecord', content };
  }
}

/** True if exactly the named arguments are given, with values that their schemas allow. */
function fits(given: Record<string, unknown>, schemas: Record<string, JsonSchema>): boolean {
  const names = Object.keys(schemas);
  return names.length === Object.keys(given).length && names.every((name) => allows(schemas[name] ?? {}, given[name]));
}

function allows(schema: JsonSchema, value: unknown): boolean {
  const vocabulary = vocabularyOf(schema);
  return !vocabulary || new RegExp(`^${expressionOf(vocabulary)}$`).test(String(value));
}

/** Turns a first message into its skeleton; undefined if a number or a word of the world's vocabulary is left in it. */
function skeletonMaker(world: World): (message: string) => string | undefined {
  const { lookup, writes, ask, tell } = world;
  const vocabularies = new Map<string, Vocabulary>(lookup.fields.map((f) => [f.name, f.vocabulary]));
  const said = writes.flatMap((w) =>
    w.arguments.flatMap((a) => (a.from === 'said' ? [[a.name, a.vocabulary] as const] : [])),
  );
  for (const [name, vocabulary] of said) vocabularies.set(name, vocabulary);
  const filled = (text: string): string => fill(text, (slot) => expressionOf(vocabularies.get(slot) ?? { parts: [] }));
  const replacements: [RegExp, string][] = [
    ...(ask ? [[ask.answer.split('%').map(escaped).join(expressionOf(lookup.keyVocabulary)), '{key}']] : []),
    ...(tell ? [[filled(tell.question), '{question}']] : []),
    ...writes.flatMap((w) =>
      w.arguments.flatMap((a) => (a.from === 'computed' ? [[escaped(a.marker), '{marker}']] : [])),
    ),
    ...writes.map((w) => [filled(w.request), '{request}']),
  ].map(([source, slot]) => [new RegExp(source ?? '', 'g'), slot ?? '']);
  const words = new Set(
    [...vocabularies.values()].flatMap((v) => v.parts.flat()).filter((w) => /^[a-z]{2,}$/i.test(w)),
  );
  return (message) => {
    const skeleton = replacements.reduce((text, [expression, slot]) => text.replace(expression, slot), message);
    const rest = skeleton.replace(/\{\w+\}/g, ' ');
    const left = /\d/.test(rest) || (rest.match(/[a-z]+/gi) ?? []).some((word) => words.has(word));
    return left || !skeleton.includes('{request}') ? undefined : skeleton;
  };
}

/** A regular expression's source for `text`, with each slot's place taken by `expression(slot)`. */
function fill(text: string, expression: (slot: string) => string): string {
  const slots = slotsOf(text);
  return text
    .split(/\{\w+\}/)
    .map((literal, i) => escaped(literal) + (slots[i] === undefined ? '' : expression(slots[i])))
    .join('');
}

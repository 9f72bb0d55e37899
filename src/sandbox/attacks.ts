/**
 * Attacks on an environment: scripts that try to score without the capability, kept at the end of the module's text as
 * lines `// Attack: {"name": ..., "messages": [...]}`. They decide nothing and copy from what they are shown.
 */
import { z } from 'zod';
import { type AssistantMessage, callAll, type Message, type ToolSchema } from '../domain/messages';
import { assistantMessages, callWith, contentsFrom, jsonOf, valuesNamed } from './conversation';
import { quoted } from './limits';
import { type AuditPolicy, SHORTCUT } from './policies';

/** Attacks on one version are repeated on every later one: five for each of forty rounds. */
export const MOST_ATTACKS = 200;
/** `said`: characters of a message, and of all that is filled into one. */
const MOST = { messages: 30, calls: 20, said: 20_000, chars: 40_000, places: 200, depth: 10 };

/** `<user>`: what the user said last; `<2>`: the second observation; `<2.field>`: its first value of this name. */
const PLACE = /<(user|(\d{1,3})(?:\.(\w+))?)>/g;

const isFlat = (value: unknown, depth: number = MOST.depth): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (depth > 0 && Object.values(value).every((item) => isFlat(item, depth - 1)));

const attackCall = z.strictObject({
  name: z.string(),
  arguments: z
    .record(z.string(), z.unknown())
    .refine((given) => isFlat(given), { error: `nested more than ${MOST.depth} deep: nest less`, abort: true }),
});
const scripted = z.strictObject({
  name: z.string().min(1).max(100),
  messages: z
    .array(
      z
        .strictObject({
          say: z.string().max(MOST.said).optional(),
          calls: z.array(attackCall).max(MOST.calls).optional(),
        })
        .refine(({ say, calls }) => say !== undefined || calls !== undefined, 'give say or calls'),
    )
    .min(1)
    .max(MOST.messages),
});
export const attackSchema = scripted.superRefine((attack, { addIssue }) => {
  const text = JSON.stringify(attack);
  const places = text.match(PLACE)?.length ?? 0;
  if (text.length > MOST.chars) addIssue(`${text.length} characters: write at most ${MOST.chars}`);
  if (places > MOST.places) addIssue(`${places} places to fill in: write at most ${MOST.places}`);
});
export type Attack = z.infer<typeof attackSchema>;

const LINE = /^\/\/ Attack: (.*)$/gm;

/** Escapes U+2028 and U+2029, which also end a comment: text after one would become the module's code. */
export const attackLine = (attack: Attack): string =>
  `// Attack: ${JSON.stringify(attack).replace(/[\u2028\u2029]/g, (end) => `\\u${end.charCodeAt(0).toString(16)}`)}`;

/** Returns the attacks in a module's text, and a finding for each invalid attack line. */
export function attacksIn(source: string): { attacks: Attack[]; wrong: string[] } {
  const read = [...source.matchAll(LINE)].map(([line, text = '']) => {
    const parsed = attackSchema.safeParse(jsonOf(text));
    if (parsed.success) return parsed.data;
    return `"${quoted(line, 100)}": ${quoted(parsed.error.issues[0]?.message ?? '')}: correct the line`;
  });
  const attacks = read.filter((one) => typeof one !== 'string');
  const wrong = read.filter((one) => typeof one === 'string');
  const tooMany = `${attacks.length} attacks: keep ${MOST_ATTACKS} at most`;
  return { attacks, wrong: attacks.length > MOST_ATTACKS ? [...wrong, tooMany] : wrong };
}

export const attackPolicies = (attacks: readonly Attack[], tools: readonly ToolSchema[]): AuditPolicy[] =>
  attacks.map(({ name, messages }) => ({
    name: `attack "${name}"`,
    limits: SHORTCUT,
    isEvidence: true,
    on: () => (conversation) => {
      const next = messages[assistantMessages(conversation).length];
      return next && filledIn(next, conversation, tools);
    },
  }));

function filledIn(
  { say = '', calls = [] }: Attack['messages'][number],
  conversation: readonly Message[],
  tools: readonly ToolSchema[],
): AssistantMessage {
  const filled = fillerOf(conversation);
  const content = String(filled(say)).slice(0, MOST.said);
  if (calls.length === 0) return { role: 'assistant', content };
  const made = calls.map(({ name, arguments: given }) => {
    const tool = tools.find((one) => one.name === name);
    const named = tool ? callWith(tool, contentsFrom(conversation, 'user')).arguments : {};
    const own = Object.entries(given).map(([field, value]) => [
      field,
      value === '<named>' ? named[field] : deeply(value, filled),
    ]);
    return { name, arguments: Object.fromEntries(own) as Record<string, unknown> };
  });
  return { ...callAll(made), content };
}

function deeply(value: unknown, change: (text: string) => unknown): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((item) => deeply(item, change));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, deeply(item, change)]));
}

/** Fills the places of a message's texts in. A text that is one place only becomes the value itself, a number where it is one. */
function fillerOf(conversation: readonly Message[]): (text: string) => unknown {
  const observations = contentsFrom(conversation, 'tool');
  const valueAt = (place: RegExpMatchArray): unknown => {
    const [, what, number, field] = place;
    if (what === 'user') return contentsFrom(conversation, 'user').at(-1) ?? '';
    const observation = observations[Number(number) - 1] ?? '';
    return field === undefined ? observation : (valuesNamed(field, [observation])[0] ?? '');
  };
  let room = MOST.said;
  const fitting = (value: unknown): unknown => {
    if (typeof value !== 'string') return value;
    const text = value.slice(0, room);
    room -= text.length;
    return text;
  };
  return (text) => {
    const [only] = text.matchAll(PLACE);
    if (only && only[0] === text) return fitting(valueAt(only));
    return text.replace(PLACE, (...place) => String(fitting(valueAt(place as unknown as RegExpMatchArray))));
  };
}

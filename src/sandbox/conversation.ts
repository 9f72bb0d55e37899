/** Reads messages, calls and answers of a conversation, and makes calls by copying values from it without understanding them. */
import {
  argumentsOf,
  type AssistantMessage,
  callText,
  type JsonSchema,
  jsonText,
  type Message,
  type ToolCall,
  type ToolSchema,
} from '../domain/messages';
import { quoted } from './limits';
import { valuesIn, vocabularyOf } from './vocabulary';

export const isWrite = ({ annotations }: ToolSchema): boolean => annotations?.readOnlyHint !== true;

export const assistantMessages = (messages: readonly Message[]): AssistantMessage[] =>
  messages.filter((m) => m.role === 'assistant');

export const callsIn = (messages: readonly Message[]): ToolCall[] =>
  assistantMessages(messages).flatMap((m) => m.toolCalls ?? []);

export const contentsFrom = (messages: readonly Message[], role: 'user' | 'tool'): string[] =>
  messages.flatMap((m) => (m.role === role ? [m.content] : []));

export interface Answer {
  tool: string;
  given: string;
  content: string;
}

/** Returns the answers to the agent's calls in order. Later messages may reuse ids. */
export function answersIn(messages: readonly Message[]): Answer[] {
  const open = new Map<string, ToolCall>();
  return messages.flatMap((message) => {
    if (message.role === 'assistant') for (const call of message.toolCalls ?? []) open.set(call.id, call);
    const call = message.role === 'tool' && message.requestor !== 'user' ? open.get(message.toolCallId) : undefined;
    if (!call) return [];
    return [{ tool: call.name, given: argumentsOf(call), content: message.content }];
  });
}

/** A conversation on one line of at most `most` characters, without the policy. */
export function conversationLine(messages: readonly Message[], most: number): string {
  const turns = messages.flatMap((message) => {
    if (message.role === 'system') return [];
    const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : [];
    const speaker = message.role === 'assistant' ? 'agent' : message.role;
    return `${speaker}: ${quoted([message.content, ...calls.map(callText)].filter(Boolean).join(' '))}`;
  });
  return quoted(turns.join(' | '), most);
}

const READ = { text: 2_000, observation: 20_000, records: 16, objects: 64, fields: 40, depth: 6 };

type Fields = Record<string, unknown>;
type Plain = string | number | boolean;

export const jsonOf = (content: string): object | undefined =>
  /^\s*[{[]/.test(content) ? (jsonText.safeParse(content).data as object | undefined) : undefined;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Records of the observations, the last ones: what is separated by " ; ", or each object of a JSON text with the fields of those around it,
 * which it is found by: an item with the number of its order.
 */
export const recordsIn = (messages: readonly Message[]): string[] =>
  messages
    .flatMap((m) => (m.role === 'tool' ? [m.content.slice(0, READ.observation)] : []))
    .flatMap((content) => {
      const json = jsonOf(content);
      return json ? objectsIn(json).map((fields) => JSON.stringify(fields)) : content.slice(0, 5_000).split(' ; ');
    })
    .slice(-READ.records);

function objectsIn(json: unknown): Fields[] {
  const found: Fields[] = [];
  const look = (value: unknown, around: Fields, depth: number): void => {
    if (depth > READ.depth || found.length >= READ.objects) return;
    if (Array.isArray(value)) return value.slice(0, READ.objects).forEach((item) => look(item, around, depth + 1));
    if (!isFields(value)) return;
    const own = Object.entries(value).slice(0, READ.fields);
    const plain = own.filter(([, field]) => isPlain(field) || isListOfTexts(field));
    const all = Object.entries({ ...around, ...Object.fromEntries(plain) });
    const fields = Object.fromEntries(all.slice(-READ.fields));
    found.push(fields);
    for (const [, field] of own) look(field, fields, depth + 1);
  };
  look(json, {}, 0);
  return found;
}

const isPlain = (value: unknown): value is Plain => ['string', 'number', 'boolean'].includes(typeof value);
const isListOfTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string');

/** Returns the values of a field, or of its singular (`item_id` for `item_ids`), in JSON texts in order. */
export function valuesNamed(name: string, texts: readonly string[]): Plain[] {
  const names = [name, name.replace(/s$/, '')];
  return texts.flatMap((text) => {
    const json = jsonOf(text);
    const objects = json ? objectsIn(json) : [];
    return objects.flatMap((fields) => names.flatMap((key) => [fields[key]].flat()).filter(isPlain));
  });
}

/**
 * A call whose arguments are copied from the first text that holds a fitting value: one of the argument's name, one that looks like the
 * example in its description, one that its schema lists. Else the first value that the schema allows; a free text is the last of the
 * words with a digit. An argument that is not required is left out where nothing fits.
 */
export function callWith(tool: ToolSchema, texts: readonly string[]): { name: string; arguments: Fields } {
  const { properties = {}, required: needed } = tool.parameters;
  const required = Array.isArray(needed) ? needed : Object.keys(properties);
  const found = argumentsIn(tool, texts);
  const given = Object.entries(properties).flatMap(([name, schema]): [string, unknown][] => {
    if (name in found) return [[name, found[name]]];
    return required.includes(name) ? [[name, anyValue(schema, texts)]] : [];
  });
  return { name: tool.name, arguments: Object.fromEntries(given) };
}

export const argumentsIn = ({ parameters }: ToolSchema, texts: readonly string[]): Fields =>
  Object.fromEntries(
    Object.entries(parameters.properties ?? {})
      .map(([name, schema]) => [name, copied({ name, schema, texts })] as const)
      .filter(([, value]) => value !== undefined),
  );

function copied({ name, schema, texts }: { name: string; schema: JsonSchema; texts: readonly string[] }): unknown {
  if (schema.type === 'array') {
    const item = copied({ name, schema: schema.items ?? {}, texts });
    return item === undefined ? undefined : [item];
  }
  const named = valuesNamed(name, texts);
  const vocabulary = vocabularyOf(schema);
  if (vocabulary) {
    const [found] = [...named.map(String), ...texts].flatMap((text) => valuesIn(schema, text.slice(0, READ.text)));
    return found !== undefined && vocabulary.number ? Number(found) : found;
  }
  const isNumber = schema.type === 'number' || schema.type === 'integer';
  const type = isNumber ? 'number' : (schema.type ?? 'string');
  const sameType = named.find((value) => typeof value === type);
  if (sameType !== undefined || type !== 'string') return sameType;
  return likeExample(schema, texts);
}

function anyValue(schema: JsonSchema, texts: readonly string[]): unknown {
  const vocabulary = vocabularyOf(schema);
  const first = vocabulary?.parts.map(([option = '']) => option).join('');
  if (first !== undefined) return vocabulary?.number ? Number(first) : first;
  const last = texts.flatMap(tokensOf).findLast((token) => /\d/.test(token));
  switch (schema.type) {
    case 'array':
      return last === undefined ? [] : [last];
    case 'object':
      return {};
    case 'boolean':
      return true;
    case 'number':
    case 'integer':
      return Number(last?.match(/\d+/)?.[0] ?? 0);
    default:
      return examplesIn(schema).words[0] ?? last ?? '';
  }
}

/** Finds a value like the examples that a description quotes: for identifiers a token of the same form, else an example that occurs in the texts. */
function likeExample(schema: JsonSchema, texts: readonly string[]): string | undefined {
  const { forms, words } = examplesIn(schema);
  if (forms.length > 0) return texts.flatMap(tokensOf).find((token) => forms.includes(formOf(token)));
  const said = texts.join('\n').toLowerCase();
  return words.find((value) => said.includes(value.toLowerCase()));
}

function examplesIn({ description }: JsonSchema): { forms: string[]; words: string[] } {
  // A module's schema may hold anything.
  const text = String(description ?? '').slice(0, READ.text);
  const quoted = [...text.matchAll(/'([^'\n]{1,60})'/g)].flatMap(([, example]) => example ?? []);
  const isForm = (example: string): boolean => /[\d#@_]/.test(example) && !/\s/.test(example);
  return { forms: quoted.filter(isForm).map(formOf), words: quoted.filter((example) => !isForm(example)) };
}

/** `#W123` and `#K9` have one form, and so have all addresses of mail. */
const formOf = (token: string): string =>
  token.includes('@') ? '@' : token.replace(/[a-z]+/gi, 'a').replace(/\d+/g, '0');

/** Words, with the marks that identifiers have within. */
const tokensOf = (text: string): string[] =>
  (text.slice(0, READ.text).match(/[\w#@.+-]+/g) ?? []).map((token) => token.replace(/[.+-]+$/, ''));

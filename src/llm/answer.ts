/**
 * Prompts and usable answers. A prompt is a file of messages with places for values; a value is never read as a message or a place. An unusable answer
 * is sent back with its defects: nothing is filled in or guessed for the model. Reading an answer takes time in proportion to its length.
 */
import { CHARACTERS_A_TOKEN, tokensOf } from '../domain/endpoints';
import { OutsideFailure } from '../domain/failures';
import { getOrMake } from '../domain/maps';
import type { Asking, ChatMessage, LanguageModel, ModelReply } from './model';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../store/project-root';
import { digest } from '../store/hash';
import type { z } from 'zod';

/** The value of a reply, or its defects in words for the model. */
export type Read<T> = { value: T } | { defects: string[] };

/** Asks until `read` accepts a reply; each of at most `repairs` further requests lists the defects. Throws AnswerInvalid. */
export async function answerOf<T>(o: {
  model: LanguageModel;
  messages: readonly ChatMessage[];
  seed: number;
  read: (text: string) => Read<T> | Promise<Read<T>>;
  repairs: number;
  asking: Asking;
}): Promise<T> {
  const { model, messages: question, seed, read, repairs, asking } = o;
  const { promptTokens: room = Infinity } = model;
  let messages = [...question];
  for (let repair = 0; ; repair++) {
    const reply = await model.ask({ messages, seed }, asking);
    const unusable = defectOf(reply);
    const result = unusable === undefined ? await read(reply.text) : { defects: [unusable] };
    if ('value' in result) return result.value;
    const defects = result.defects.map((defect) => `- ${defect}`).join('\n');
    if (repair === repairs) {
      const asked = repairs === 1 ? 'one repair' : `${repairs} repairs`;
      const fix = 'raise repairs or maxTokens, or take a stronger model';
      const shown = defects.length > 2000 ? `${defects.slice(0, 2000)} ...` : defects;
      const problem = `no answer that can be used, after ${asked}; ${fix}`;
      throw new OutsideFailure('AnswerInvalid', `${asking.step}: ${problem}:\n${shown}`);
    }
    const request = renderPrompt('repair', { defects });
    const quoting = (before: readonly ChatMessage[], content: string): ChatMessage[] => [
      ...before,
      { role: 'assistant', content },
      ...request,
    ];
    const quote = quotable(reply);
    // The whole conversation, or the question and the last answer, or as much of that answer as fits.
    const fits = [quoting(messages, quote), quoting(question, quote)].find((all) => tokensOf(sizeOf(all)) <= room);
    const left = room * CHARACTERS_A_TOKEN - sizeOf(quoting(question, '')) - MARK_CHARACTERS;
    messages = fits ?? quoting(question, beginning(quote, Math.max(LEAST_QUOTED, left)));
  }
}

/** Characters quoted from an answer that was cut off because it was too long. */
const QUOTED_OF_CUT_OFF = 4000;
/** Characters quoted from an answer, even if the request becomes too long. */
const LEAST_QUOTED = 1000;
const MARK_CHARACTERS = 60;

function quotable({ text, finish }: ModelReply): string {
  // Endpoints refuse a message without words.
  if (text.trim() === '') return '(nothing)';
  return finish === 'length' ? beginning(text, QUOTED_OF_CUT_OFF) : text;
}

const sizeOf = (messages: readonly ChatMessage[]): number =>
  messages.reduce((sum, { content }) => sum + content.length, 0);

function beginning(text: string, characters: number): string {
  if (text.length <= characters) return text;
  // No half of a surrogate pair is left.
  const kept = text.slice(0, characters).replace(/[\ud800-\udbff]$/, '');
  return `${kept}\n\n[cut here: ${text.length - kept.length} more characters]`;
}

/** Returns the defect that makes a reply unusable for every question. */
function defectOf({ text, finish }: ModelReply): string | undefined {
  if (finish === 'length')
    return 'it was cut off because it is too long; give a shorter one: leave out what was not asked for, and reason less before it';
  if (finish === 'content_filter')
    return 'it was withheld, as a refusal or by a content filter; give the answer that was asked for in other words, and nothing beside it';
  return text.trim() === '' ? 'it is empty; write the answer itself, in the form that was asked for' : undefined;
}

/** Ends the reasoning that a server left in the reply. */
const THOUGHT = '</think>';
/** Returns the reply's JSON object or array: in a fence, the longest of several, or else bare. */
export function jsonIn(text: string): { value: unknown } | { defect: string } {
  const reply = withoutThought(text);
  const fenced = blocksIn(reply).flatMap(({ language, body }) => (language === 'json' ? [body] : []));
  const found = (fenced.length > 0 ? fenced : [reply]).flatMap(bracketed).sort((a, b) => b.length - a.length);
  let problem = '';
  for (const json of found) {
    try {
      return { value: JSON.parse(json) as unknown };
    } catch (error) {
      problem ||= (error as Error).message;
    }
  }
  if (found.length === 0) return { defect: 'there is no JSON in it; give the answer as one JSON value' };
  return { defect: `its JSON can't be parsed: ${problem}; give the whole answer as one valid JSON value` };
}

/** Defects that one answer is sent back with: more say nothing new. */
export const MOST_DEFECTS = 30;

/** Returns the reply's JSON as the schema reads it, or its defects, of which each names the place. */
export function readJsonAnswer<Schema extends z.ZodType>(text: string, schema: Schema): Read<z.output<Schema>> {
  const json = jsonIn(text);
  if ('defect' in json) return { defects: [json.defect] };
  const { data, error } = schema.safeParse(json.value);
  if (!error) return { value: data };
  const defects = error.issues.map(({ path, message }) => `${path.join('.') || 'the answer'}: ${message}`);
  return { defects: defects.slice(0, MOST_DEFECTS) };
}

/** Returns the text from the first line that begins with a bracket, else from the first bracket, to the last closing one. */
function bracketed(text: string): string[] {
  const start = [/^[^\S\n]*[[{]/m, /[[{]/].map((opening) => text.search(opening)).find((at) => at >= 0);
  if (start === undefined) return [];
  const end = Math.max(text.lastIndexOf(']'), text.lastIndexOf('}')) + 1;
  return [text.slice(start, end > start ? end : undefined)];
}

/** Returns the last fenced block of one of the languages. The end of the reply closes an open fence. */
export const codeIn = (text: string, languages: readonly string[]): string | undefined =>
  blocksIn(withoutThought(text)).findLast(({ language }) => languages.includes(language))?.body;

const withoutThought = (text: string): string => {
  const end = text.lastIndexOf(THOUGHT);
  return end < 0 ? text : text.slice(end + THOUGHT.length);
};

interface Block {
  language: string;
  body: string;
}

/** A fence is a line of its own. A fence of at least its length closes it; shorter ones are text. */
function blocksIn(text: string): Block[] {
  const blocks: Block[] = [];
  let open: { fence: string; language: string; lines: string[] } | undefined;
  const close = (): void => {
    if (open) blocks.push({ language: open.language, body: open.lines.join('\n') });
    open = undefined;
  };
  for (const line of text.split(/\r?\n/)) {
    const [, fence = '', info = ''] = /^ {0,3}(`{3,})([^`]*)$/.exec(line) ?? [];
    if (!open && fence) open = { fence, language: (/^\S*/.exec(info.trimStart())?.[0] ?? '').toLowerCase(), lines: [] };
    else if (open && fence.length >= open.fence.length && info.trim() === '') close();
    else open?.lines.push(line);
  }
  close();
  return blocks;
}

const PROMPTS = join(projectRoot, 'prompts');
const PLACE = /\{\{([A-Za-z]\w*)\}\}/g;
/** Prompt files by name. Each is read once, so that prompts and their digest have the same content. */
const files = new Map<string, ChatMessage[]>();

/** Reads a prompt. A line `--- system`, `--- user` or `--- assistant` begins each message. */
const readPrompt = (name: string): ChatMessage[] =>
  getOrMake(files, name, () => {
    const text = readFileSync(join(PROMPTS, `${name}.md`), 'utf8');
    const [, ...parts] = text.split(/^--- (system|user|assistant)[ \t]*\r?$/m);
    return Array.from({ length: parts.length / 2 }, (_, n) => ({
      role: parts[2 * n] as ChatMessage['role'],
      content: parts[2 * n + 1]!.trim(),
    }));
  });

/** Returns the digest of the prompts' texts, for keys. */
export const promptDigest = (names: readonly string[]): string =>
  digest(Object.fromEntries(names.map((name) => [name, readPrompt(name)])));

/** Returns a prompt's messages with the values in their places. */
export const renderPrompt = (name: string, values: Readonly<Record<string, string>>): ChatMessage[] =>
  readPrompt(name).map(({ role, content }) => ({
    role,
    content: content.replace(PLACE, (_, place: string) => {
      const value = values[place];
      if (value === undefined) throw new Error(`prompts/${name}.md: {{${place}}} has no value`);
      return value;
    }),
  }));

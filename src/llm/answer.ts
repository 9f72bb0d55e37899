/**
 * Prompts and usable answers. A prompt is a file of messages with places for values; a value is never read as a message or a place. An unusable answer
 * is sent back with its defects: nothing is filled in or guessed for the model. Reading an answer takes time in proportion to its length.
 */
import { checkFile } from '../domain/allowed';
import { CHARACTERS_A_TOKEN, tokensOf } from '../domain/endpoints';
import { OutsideFailure, reasonOf } from '../domain/failures';
import type { Asking, ChatMessage, LanguageModel, ModelReply } from './model';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../store/project-root';
import { digest } from '../store/hash';
import { isCode } from '../store/durable-file';

/** The value of a reply, or its defects in words for the model. */
export type Read<T> = { value: T } | { defects: string[] };

export async function answerOf<T>(o: {
  model: LanguageModel;
  messages: readonly ChatMessage[];
  seed: number;
  read: (text: string) => Read<T> | Promise<Read<T>>;
  /** Limit of requests to correct an unusable answer. */
  repairs: number;
  asking: Asking;
  /** Hold `repair`; default: the project's. */
  prompts?: Prompts;
}): Promise<T> {
  const { model, messages: question, seed, read, repairs, asking, prompts = openPrompts() } = o;
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
    const request = prompts.render('repair', { defects });
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

/** Characters quoted from an answer that was cut off: most of it should not have been written. */
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
/** Limit of characters read after brackets that open nothing, as in prose. */
const FOLLOWED = 20_000_000;
/** Limit of brackets that are followed. */
const OPENED = 100_000;

/** Matches from a line that begins with a bracket. It looks within the line only, which keeps blank lines linear. */
const BEGUN = /^[^\S\r\n\u2028\u2029]*[[{][\s\S]*/m;

/** Returns the reply's JSON object or array: in a fence or else bare, the longest of several. */
export function jsonIn(text: string): { value: unknown } | { defect: string } {
  const reply = withoutThought(text);
  const fenced = blocksIn(reply).flatMap(({ language, body }) => (language === 'json' ? [body] : []));
  const found = longestIn(fenced) ?? longestIn([reply]);
  if (found) return { value: found.value };
  const begun = fenced.find((body) => /^\s*[[{]/.test(body)) ?? BEGUN.exec(reply)?.[0];
  if (begun === undefined) return { defect: 'there is no JSON in it; give the answer as one JSON value' };
  return { defect: `its JSON can't be parsed: ${problemOf(begun)}; give the whole answer as one valid JSON value` };
}

/** Returns the last fenced block of one of the languages. The end of the reply closes an open fence. */
export const codeIn = (text: string, languages: readonly string[]): string | undefined =>
  blocksIn(withoutThought(text)).findLast(({ language }) => languages.includes(language))?.body;

const withoutThought = (text: string): string => {
  const end = text.lastIndexOf(THOUGHT);
  return end < 0 ? text : text.slice(end + THOUGHT.length);
};

interface Block {
  /** Lower case; empty without a language. */
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

interface Found {
  value: unknown;
  length: number;
}

/** Returns the longest of the outermost objects and arrays of the texts; the first of equally long ones. */
function longestIn(texts: readonly string[]): Found | undefined {
  let best: Found | undefined;
  for (const text of texts) {
    let [opened, followed] = [0, 0];
    const opening = /[[{]/g;
    for (let match = opening.exec(text); match; match = opening.exec(text)) {
      if (++opened > OPENED || followed > FOLLOWED) break;
      const end = endOf(text, match.index);
      followed += (end ?? text.length) - match.index;
      if (end === undefined) continue;
      try {
        const value: unknown = JSON.parse(text.slice(match.index, end));
        if (end - match.index > (best?.length ?? 0)) best = { value, length: end - match.index };
        opening.lastIndex = end;
      } catch {
        // An inner value may be valid.
      }
    }
  }
  return best;
}

/** Returns the end of the value that opens at `start`, or undefined if it is not closed. */
function endOf(text: string, start: number): number | undefined {
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (quoted && character === '\\') at += 1;
    else if (character === '"') quoted = !quoted;
    else if (quoted) continue;
    else if (character === '[' || character === '{') depth += 1;
    else if (character === ']' || character === '}') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return undefined;
}

function problemOf(text: string): string {
  const start = text.search(/[[{]/);
  const end = endOf(text, start);
  if (end === undefined) return 'it breaks off before it is closed, or a quote or bracket in it is not closed';
  try {
    JSON.parse(text.slice(start, end));
    return 'something follows it';
  } catch (error) {
    return (error as Error).message;
  }
}

export interface Prompts {
  /** Returns the digest of the prompts' texts, for keys. */
  digest(names: readonly string[]): string;
  /** Returns the messages with the values in their places. Throws BadInput if a place or a value is left over. */
  render(name: string, values: Readonly<Record<string, string>>): ChatMessage[];
}

const PROMPTS = join(projectRoot, 'prompts');

/** A prompt in `folder` replaces the project's of that name. Each file is read once. */
export function openPrompts({ folder }: { folder?: string | undefined } = {}): Prompts {
  if (folder !== undefined) checkFile('prompts', folder);
  const files = new Map<string, PromptFile>();
  const fileOf = (name: string): PromptFile => {
    const known =
      files.get(name) ?? readPrompt({ name, folders: [...(folder === undefined ? [] : [folder]), PROMPTS] });
    files.set(name, known);
    return known;
  };
  return {
    digest: (names) => digest(Object.fromEntries(names.map((name) => [name, fileOf(name).messages]))),
    render(name, values) {
      const { path, messages } = fileOf(name);
      const missing = Object.keys(values).find((value) => !messages.some(({ content }) => places(content).has(value)));
      if (missing !== undefined)
        throw badPrompt(`${path}: {{${missing}}} is missing; put it where its value is to stand`);
      return messages.map(({ role, content }) => ({
        role,
        content: content.replace(PLACE, (_, place: string) => {
          const value = Object.hasOwn(values, place) ? values[place] : undefined;
          if (value !== undefined) return value;
          const known = Object.keys(values).map((one) => `{{${one}}}`);
          throw badPrompt(
            `${path}: {{${place}}} is not known; the places of this prompt are ${known.join(', ') || 'none'}`,
          );
        }),
      }));
    },
  };
}

interface PromptFile {
  path: string;
  messages: ChatMessage[];
}

const PLACE = /\{\{([A-Za-z]\w*)\}\}/g;
const places = (content: string): Set<string | undefined> =>
  new Set([...content.matchAll(PLACE)].map(([, place]) => place));

const badPrompt = (message: string) => new OutsideFailure('BadInput', message);

function readPrompt({ name, folders }: { name: string; folders: string[] }): PromptFile {
  for (const path of folders.map((folder) => join(folder, `${name}.md`))) {
    try {
      return { path, messages: messagesOf(path, readFileSync(path, 'utf8')) };
    } catch (error) {
      if (!isCode(error, 'ENOENT'))
        throw error instanceof OutsideFailure ? error : badPrompt(`${path} can't be read: ${reasonOf(error)}`);
    }
  }
  throw badPrompt(`there is no prompt ${name}.md in ${folders.join(' or ')}`);
}

/** A line `--- system`, `--- user` or `--- assistant` begins each message. */
function messagesOf(path: string, text: string): ChatMessage[] {
  const [before = '', ...parts] = text.split(/^--- (system|user|assistant)[ \t]*\r?$/m);
  if (before.trim() !== '' || parts.length === 0)
    throw badPrompt(`${path} begins with no message; let its first line be "--- system" or "--- user"`);
  return Array.from({ length: parts.length / 2 }, (_, n) => {
    const role = parts[2 * n] as ChatMessage['role'];
    const content = (parts[2 * n + 1] ?? '').trim();
    if (content === '') throw badPrompt(`${path}: message ${n + 1} ("--- ${role}") is empty; write it or take it out`);
    return { role, content };
  });
}

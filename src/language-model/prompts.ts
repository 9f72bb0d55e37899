/**
 * Prompts: files of messages with places for values. Invariants: what is rendered is the text that the digest was made of; a value is never
 * read as a message or a place; equal values give equal bytes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../artifacts/given';
import { digest } from '../artifacts/hash';
import { isCode } from '../artifacts/durable-file';
import { OutsideFailure, reasonOf } from '../domain/failures';
import type { ChatMessage } from './model';

export interface Prompts {
  /** Of the files' texts: part of the identity of what asks by them. */
  digest(names: readonly string[]): string;
  /** The file's messages with the values at their places. Throws BadInput where places and values are not the same. */
  render(name: string, values: Readonly<Record<string, string>>): ChatMessage[];
}

/** The project's own. */
const PROMPTS = join(projectRoot, 'prompts');

/** `folder`: prompts of the user's, each in place of the one of its name. Files are read when they are first needed, once. */
export function openPrompts({ folder }: { folder?: string | undefined } = {}): Prompts {
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
          throw badPrompt(`${path}: {{${place}}} is not known; there is ${known.join(', ') || 'none in this prompt'}`);
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

/** Each begun by a line `--- system`, `--- user` or `--- assistant`. */
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

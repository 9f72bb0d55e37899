/**
 * A set of recorded replies: a folder with what a language model said, found by the question. Invariants: a reply's file holds exactly
 * what was said; the name of a question depends on its messages and its seed alone.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { digest } from '../../src/artifacts/hash';

/** Where the sets are that ship with the project. */
export const recordedFolder = resolve(__dirname, '..', 'recorded');

const SAMPLED = 'a language model that saw this prompt only';

export const questionSchema = z.object({
  messages: z.array(z.object({ role: z.string(), content: z.string() })).min(1),
  seed: z.number().int().optional(),
});
type RecordedQuestion = z.infer<typeof questionSchema>;

const entrySchema = z.strictObject({
  /** Beginning of the last thing that the user said. */
  step: z.string(),
  /** Of the reply. */
  bytes: z.number().int().nonnegative(),
  /** sha256 of the question. */
  prompt: z.string().regex(/^[0-9a-f]{64}$/),
  /** Where the reply came from. */
  sampled: z.string().min(1),
});
const indexSchema = z.record(z.string().regex(/^[0-9a-f]{16}$/), entrySchema);
type RecordedIndex = z.infer<typeof indexSchema>;

/** sha256 over canonical JSON of messages and seed. */
export const questionHash = ({ messages, seed }: RecordedQuestion): string => digest({ messages, seed });
/** The name of a question's files. */
export const shortHash = (question: RecordedQuestion): string => questionHash(question).slice(0, 16);

/** What a model is shown that answers by hand: the messages under lines with their roles, nothing else. */
export const promptText = ({ messages }: RecordedQuestion): string =>
  messages.map(({ role, content }) => `--- ${role}\n${content.trimEnd()}\n`).join('\n');

export interface RecordedSet {
  readonly folder: string;
  index(): RecordedIndex;
  find(question: RecordedQuestion): string | undefined;
  add(question: RecordedQuestion, reply: string): void;
}

/** `folder`: a path, or the name of a set in test/recorded. */
export function openRecordedSet(name: string): RecordedSet {
  const folder = resolve(recordedFolder, name);
  const indexFile = join(folder, 'index.json');
  const replyFile = (question: RecordedQuestion) => join(folder, `${shortHash(question)}.md`);
  const index = (): RecordedIndex =>
    existsSync(indexFile) ? indexSchema.parse(JSON.parse(readFileSync(indexFile, 'utf8'))) : {};
  return {
    folder,
    index,
    find: (question) => (existsSync(replyFile(question)) ? readFileSync(replyFile(question), 'utf8') : undefined),
    add(question, reply) {
      mkdirSync(folder, { recursive: true });
      writeWhole(replyFile(question), reply);
      const entry = {
        step: stepOf(question),
        bytes: Buffer.byteLength(reply),
        prompt: questionHash(question),
        sampled: SAMPLED,
      };
      const entries = Object.entries({ ...index(), [shortHash(question)]: entry });
      const sorted = Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
      writeWhole(indexFile, `${JSON.stringify(sorted, undefined, 2)}\n`);
    },
  };
}

const STEP_CHARACTERS = 100;

function stepOf({ messages }: RecordedQuestion): string {
  const last = messages.findLast(({ role }) => role === 'user') ?? messages.at(-1)!;
  return last.content.replace(/\s+/g, ' ').trim().slice(0, STEP_CHARACTERS);
}

/** Nobody sees half of it. */
export function writeWhole(path: string, text: string): void {
  writeFileSync(`${path}.part`, text);
  renameSync(`${path}.part`, path);
}

/**
 * Logs of Inspect are read: `.json`, and `.eval`, which is a zip of one JSON file a sample. Invariant: a sample that broke or has no score is left out
 * with a note: it is no failure of the agent's.
 */
import { z } from 'zod';
import { reasonOf } from '../domain/failures';
import {
  clipped,
  type Conversation,
  counted,
  type FileContents,
  problemsIn,
  type RawMessage,
  rawMessagesSchema,
  toMessages,
} from './messages';
import { textsInZip } from './zip';

const sampleSchema = z.looseObject({
  id: z.union([z.string(), z.number()], { error: 'text or a number' }).transform(String),
  epoch: z.number({ error: 'a number' }).default(1),
  messages: rawMessagesSchema,
  scores: z
    .record(z.string(), z.looseObject({ value: z.unknown() }), { error: 'an object of scores by scorer' })
    .nullish(),
  /** Long text of its messages, where the log keeps it apart. */
  attachments: z.record(z.string(), z.string()).optional(),
});

interface Log {
  /** How messages call the file. */
  name: string;
  /** Whose score counts in a log with several. */
  scorer: string | undefined;
}

const CONVERT = 'write it as JSON with `inspect log convert --to json --output-dir FOLDER FILE`';

/** `file`: a zip. */
export async function readEvalLog(file: string, log: Log): Promise<FileContents> {
  try {
    return (
      (await readSamples(samplesIn(file), log)) ??
      unreadable(`${log.name}: a zip without samples/*.json; give a log of Inspect, or JSON lines`)
    );
  } catch (error) {
    return unreadable(`${log.name}: can't be read (${reasonOf(error)}); ${CONVERT}`);
  }
}

async function* samplesIn(file: string): AsyncGenerator<unknown> {
  for await (const { name, text } of textsInZip(file, /^samples\/.+\.json$/))
    try {
      yield parsePython(text);
    } catch {
      throw new Error(`${name} in it is no JSON`);
    }
}

/** JSON as Python writes it: it has NaN, which is Inspect's score of what was not scored, and infinities. They are null here. */
export function parsePython(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(
      text.replace(/"(?:[^"\\]|\\.)*"|-?\b(?:NaN|Infinity)\b/g, (part) => (part[0] === '"' ? part : 'null')),
    );
  }
}

/** Reads the value of a JSON file. */
export async function readJsonLog(value: object, log: Log): Promise<FileContents> {
  const { samples } = value as { samples?: unknown };
  const read = Array.isArray(samples) ? await readSamples(samples, log) : undefined;
  return (
    read ??
    unreadable(
      Array.isArray(value)
        ? `${log.name}: a list; write one conversation a line: \`jq -c '.[]' FILE.json > FILE.jsonl\``
        : `${log.name}: no log of Inspect with samples, no trajectory (ATIF), nor JSON lines (one conversation a line); its fields: ${Object.keys(value).join(', ')}`,
    )
  );
}

const unreadable = (problem: string): FileContents => ({ conversations: [], problems: [problem], notes: [] });

/** One after the other; undefined if there is none. */
async function readSamples(
  samples: AsyncIterable<unknown> | Iterable<unknown>,
  { name, scorer }: Log,
): Promise<FileContents | undefined> {
  const conversations: Conversation[] = [];
  const problems: string[] = [];
  const [unscored, oddities]: [string[], string[]] = [[], []];
  let count = 0;
  for await (const value of samples) {
    const where = `${name}: samples[${count++}]`;
    if ((value as { error?: unknown } | null)?.error) {
      unscored.push('it ended with an error');
      continue;
    }
    const { data, error } = sampleSchema.safeParse(value);
    if (!data) {
      problems.push(...problemsIn(error, value).map((problem) => `${where} ${problem}`));
      continue;
    }
    const { id, epoch, messages, scores, attachments } = data;
    const reward = rewardOf(scores ?? {}, scorer);
    if (reward === undefined) unscored.push('it has no score');
    else if (typeof reward === 'string') problems.push(`${where} (id ${id}) ${reward}`);
    else {
      const full = attachments ? withAttachments(messages, attachments) : messages;
      conversations.push({ id: `${id}-${epoch}`, task: id, messages: toMessages(full, oddities), reward });
    }
  }
  if (count === 0) return undefined;
  const notes = [
    ...counted(unscored).map(([why, left]) => `${name}: left out ${left} of ${count} samples: ${why}`),
    ...counted(oddities).map(([what, times]) => `${name}: ${what} (${times})`),
  ];
  return { conversations, problems, notes };
}

/** Undefined where there is no score; text says what is wrong with it. */
export function rewardOf(
  scores: Record<string, { value?: unknown }>,
  scorer: string | undefined,
): number | string | undefined {
  const names = Object.keys(scores);
  if (names.length === 0) return undefined;
  if (scorer === undefined && names.length > 1)
    return `has scores of ${names.join(', ')}; say which one counts with --scorer NAME`;
  const name = scorer ?? names[0] ?? '';
  if (!Object.hasOwn(scores, name)) return `has no score of ${name}; --scorer may be ${names.join(', ')}`;
  const value = scores[name]?.value;
  if (value === null) return undefined;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'number' && value >= 0 && value <= 1) return value;
  const grade = typeof value === 'string' ? grades[value.trim().toUpperCase()] : undefined;
  if (grade !== undefined) return grade;
  return `scores.${name}.value is ${clipped(value)}; it must be "C", "I", "P", "N", true, false or a number from 0 to 1`;
}

/** Correct, incorrect, partly, no answer. */
const grades: Record<string, number> = { C: 1, I: 0, P: 0.5, N: 0, TRUE: 1, FALSE: 0 };

const ATTACHMENT = 'attachment://';

/** Puts back the long texts in place of `attachment://HASH`. */
const withAttachments = (messages: readonly RawMessage[], attachments: Record<string, string>): RawMessage[] =>
  JSON.parse(JSON.stringify(messages), (_key, value: unknown) =>
    typeof value === 'string' && value.startsWith(ATTACHMENT)
      ? (attachments[value.slice(ATTACHMENT.length)] ?? value)
      : value,
  ) as RawMessage[];

/**
 * Logs of Inspect: `.json`, and `.eval`, which is a zip of one JSON file a sample. Invariant: a sample without a score (it broke, or was not
 * scored) is left out and told of: it is no failure of the agent's.
 */
import { strFromU8, unzipSync } from 'fflate';
import { z } from 'zod';
import {
  type Conversation,
  type FileContents,
  problemsIn,
  rawMessagesSchema,
  clipped,
  Tally,
  toMessages,
} from './messages';

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

interface Read {
  body: Buffer;
  name: string;
  /** Whose score counts, where there are several. */
  scorer?: string | undefined;
}

const CONVERT = 'write it as JSON with `inspect log convert --to json --output-dir FOLDER FILE`';

export const isZip = (body: Buffer): boolean => body.subarray(0, 4).toString('latin1') === 'PK\u0003\u0004';

export function readEvalLog({ body, ...how }: Read): FileContents {
  const { name } = how;
  let files: Record<string, Uint8Array>;
  try {
    files = unzipSync(body, { filter: (file) => /^samples\/.+\.json$/.test(file.name) });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return failed(`${name}: can't be unzipped (${reason}); ${CONVERT}`);
  }
  const names = Object.keys(files).sort();
  if (names.length === 0) return failed(`${name}: a zip without samples/*.json; give a log of Inspect, or JSON lines`);
  const samples: unknown[] = [];
  for (const file of names)
    try {
      samples.push(JSON.parse(strFromU8(files[file] ?? new Uint8Array())));
    } catch {
      return failed(`${name}: ${file} in it is no JSON; ${CONVERT}`);
    }
  return readSamples({ samples, ...how });
}

/** The log's value, already parsed. */
export function readJsonLog({ value, ...how }: Omit<Read, 'body'> & { value: object }): FileContents {
  const { name } = how;
  const { samples } = value as { samples?: unknown };
  if (Array.isArray(samples) && samples.length > 0) return readSamples({ samples, ...how });
  return failed(
    Array.isArray(value)
      ? `${name}: a list; write one conversation a line: \`jq -c '.[]' FILE.json > FILE.jsonl\``
      : `${name}: no log of Inspect with samples, nor JSON lines (one conversation a line); its fields: ${Object.keys(value).join(', ')}`,
  );
}

const failed = (problem: string): FileContents => ({ conversations: [], problems: [problem], notes: [] });

function readSamples({ samples, name, scorer }: Omit<Read, 'body'> & { samples: readonly unknown[] }): FileContents {
  const contents: FileContents = { conversations: [], problems: [], notes: [] };
  const oddities = new Tally();
  const unscored = new Tally();
  for (const [n, value] of samples.entries()) {
    const where = `${name}: samples[${n}]`;
    const parsed = sampleSchema.safeParse(value);
    if (broke(value)) unscored.add('it ended with an error');
    else if (!parsed.success)
      contents.problems.push(...problemsIn({ error: parsed.error, value }).map((problem) => `${where} ${problem}`));
    else {
      const { id, epoch, messages, scores, attachments } = parsed.data;
      const reward = rewardOf(scores ?? {}, scorer);
      if (reward === undefined) unscored.add('it has no score');
      else if (typeof reward === 'string') contents.problems.push(`${where} (id ${id}) ${reward}`);
      else {
        const raw = attachments ? rawMessagesSchema.parse(attached(messages, attachments)) : messages;
        contents.conversations.push({
          id: `${id}-${epoch}`,
          task: id,
          messages: toMessages({ raw, oddities }),
          reward,
        } satisfies Conversation);
      }
    }
  }
  contents.notes.push(
    ...unscored.map((why, count) => `${name}: left out ${count} of ${samples.length} samples: ${why}`),
    ...oddities.map((what, count) => `${name}: ${what} (${count})`),
  );
  return contents;
}

const broke = (value: unknown): boolean => Boolean((value as { error?: unknown } | null)?.error);

/** Undefined where there is no score; text says what is wrong with it. */
function rewardOf(
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
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'number' && value >= 0 && value <= 1) return value;
  const grade = typeof value === 'string' ? grades[value.trim().toUpperCase()] : undefined;
  if (grade !== undefined) return grade;
  return `scores.${name}.value is ${clipped(value)}; it must be "C", "I", "P", "N", true, false or a number from 0 to 1`;
}

/** Correct, incorrect, partly, no answer. */
const grades: Record<string, number> = { C: 1, I: 0, P: 0.5, N: 0, TRUE: 1, FALSE: 0 };

const ATTACHMENT = 'attachment://';

/** With the text in the place of `attachment://HASH`. */
function attached(value: unknown, attachments: Record<string, string>): unknown {
  if (typeof value === 'string')
    return value.startsWith(ATTACHMENT) ? (attachments[value.slice(ATTACHMENT.length)] ?? value) : value;
  if (Array.isArray(value)) return value.map((one) => attached(one, attachments));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, attached(one, attachments)]));
}

/**
 * Reads logs of Inspect: `.json`, and `.eval`, a zip with a JSON file for each sample. A sample that failed or has no score is left out with a note: it
 * is no failure of the agent.
 */
import { buffer } from 'node:stream/consumers';
import { decompress } from 'fzstd';
import { type Entry, fromBufferPromise } from 'yauzl';
import { z } from 'zod';
import { rewardSchema } from '../domain/environment';
import { firstIssue } from '../domain/issues';
import { readJson } from './json';
import type { Conversation } from './line';
import { rawMessagesSchema, toMessages } from './messages';

const sampleSchema = z.looseObject({
  id: z.union([z.string(), z.number()]).transform(String),
  epoch: z.number().default(1),
  messages: rawMessagesSchema,
  scores: z.record(z.string(), z.looseObject({ value: z.unknown() })).nullish(),
  /** Long texts of messages, which hold `attachment://KEY` in their place. */
  attachments: z.record(z.string(), z.string()).default({}),
});
type Sample = z.infer<typeof sampleSchema>;

/** `scorer`: whose score counts in a log with several. */
export async function readSamples(
  samples: AsyncIterable<unknown> | Iterable<unknown>,
  { file, scorer, warnings }: { file: string; scorer: string | undefined; warnings: string[] },
): Promise<{ conversations: Conversation[]; problems: string[] }> {
  const conversations: Conversation[] = [];
  const problems: string[] = [];
  let count = 0;
  for await (const value of samples) {
    const where = `${file}: samples[${count++}]`;
    if ((value as { error?: unknown } | null)?.error) {
      warnings.push('a sample that ended with an error is left out');
      continue;
    }
    const { data, error } = sampleSchema.safeParse(value);
    if (!data) {
      problems.push(`${where} ${firstIssue(error, value)}`);
      continue;
    }
    const { id, epoch } = data;
    const reward = readScore(data.scores ?? {}, scorer);
    if (reward === undefined) warnings.push('a sample without a score is left out');
    else if (typeof reward === 'string') problems.push(`${where} (id ${id}) ${reward}`);
    else {
      const messages = toMessages(messagesIn(data, warnings), warnings);
      conversations.push({ id: `${id}-${epoch}`, task: id, messages, reward });
    }
  }
  if (count === 0) problems.push(`${file}: holds no sample of Inspect; give a log of Inspect, or JSON lines`);
  return { conversations, problems };
}

const GRADES: Record<string, number> = { C: 1, I: 0, P: 0.5, N: 0, TRUE: 1, FALSE: 0 };

/** Returns undefined where there is no score, and text where it can't be used. */
function readScore(scores: NonNullable<Sample['scores']>, scorer: string | undefined): number | string | undefined {
  const names = Object.keys(scores);
  const [name, ...others] = scorer === undefined ? names : [scorer];
  if (name === undefined || names.length === 0) return undefined;
  if (others.length > 0) return `has scores of ${names.join(', ')}; say which one counts with --scorer NAME`;
  if (!Object.hasOwn(scores, name)) return `has no score of ${name}; --scorer may be ${names.join(', ')}`;
  const value = scores[name]?.value;
  if (value === null || value === 'NaN') return undefined;
  return (
    rewardSchema.safeParse(value).data ??
    GRADES[typeof value === 'object' ? '' : String(value).trim().toUpperCase()] ??
    `scores.${name}.value is ${JSON.stringify(value).slice(0, 60)}; it must be "C", "I", "P", "N", true, false or a number from 0 to 1`
  );
}

const ATTACHMENT = 'attachment://';

const messagesIn = ({ messages, attachments }: Sample, warnings: string[]): Sample['messages'] =>
  JSON.parse(JSON.stringify(messages), (_, value: unknown) => {
    if (typeof value !== 'string' || !value.startsWith(ATTACHMENT)) return value;
    const text = attachments[value.slice(ATTACHMENT.length)];
    if (text === undefined) warnings.push('a long text that the log keeps apart is missing in it');
    return text ?? value;
  }) as Sample['messages'];

export const isZip = (body: Buffer): boolean => body.toString('latin1', 0, 4) === 'PK\u0003\u0004';

/** Yields the samples of an `.eval` in the order of their names. Of two with one name the later counts: so Inspect edits logs. */
export async function* samplesIn(body: Buffer): AsyncGenerator<unknown> {
  const zip = await fromBufferPromise(body, { lazyEntries: true });
  const entries = new Map<string, Entry>();
  for await (const entry of zip.eachEntry())
    if (/^samples\/.+\.json$/.test(entry.fileName)) entries.set(entry.fileName, entry);
  for (const [, entry] of [...entries].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const isZstandard = entry.compressionMethod === 93;
    const text = await buffer(await zip.openReadStreamPromise(entry, isZstandard ? { decodeFileData: false } : {}));
    yield readJson(Buffer.from(isZstandard ? decompress(text) : text).toString('utf8'));
  }
}

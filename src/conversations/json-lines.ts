/** Conversations as JSON lines (docs/conversations.md). Invariant: every line is looked at, and each that is wrong is named. */
import { Tally, type Conversation, type FileContents } from './conversation';
import { toMessages, toTool } from './messages';
import { problemsIn, shown } from './problems';
import { lineFields, lineSchema } from './shapes';

/** `name` is how the file is called in messages. */
export function readJsonLines({ body, name }: { body: Buffer; name: string }): FileContents {
  const contents: FileContents = { conversations: [], problems: [], notes: [] };
  const unread = new Tally();
  const odd = new Tally();
  for (const { line, text } of linesOf(body)) {
    const problems = (found: string[]) =>
      contents.problems.push(...found.map((problem) => `${name}:${line} ${problem}`));
    const read = readLine({ text, line, odd });
    if ('problems' in read) problems(read.problems);
    else {
      contents.conversations.push(read.conversation);
      for (const field of read.unread) unread.add(field);
    }
  }
  if (contents.conversations.length + contents.problems.length === 0)
    contents.problems.push(`${name}: holds no line; write one conversation a line, as docs/conversations.md shows`);
  contents.notes.push(
    ...unread.line((list) => `${name}: fields that are not read: ${list}`),
    ...odd.map((what, count) => `${name}: ${what} (${count})`),
  );
  return contents;
}

/** A text may hold U+2028, which is no end of a line in JSON lines. */
function* linesOf(body: Buffer): Generator<{ line: number; text: string }> {
  for (let start = 0, line = 1; start < body.length; line++) {
    const found = body.indexOf(10, start);
    const end = found < 0 ? body.length : found;
    const text = body
      .toString('utf8', start, end)
      .replace(/^\uFEFF/, '')
      .trim();
    if (text !== '') yield { line, text };
    start = end + 1;
  }
}

type Line = { problems: string[] } | { conversation: Conversation; unread: string[] };

function readLine({ text, line, odd }: { text: string; line: number; odd: Tally }): Line {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { problems: [`is no JSON (${reason}): ${shown(text)}; write each conversation as one line of JSON`] };
  }
  const parsed = lineSchema.safeParse(value);
  if (!parsed.success) return { problems: problemsIn({ error: parsed.error, value }) };
  const { id = null, task = null, messages, reference, tools } = parsed.data;
  const reward = rewardOf(parsed.data);
  if (typeof reward === 'string') return { problems: [reward] };
  const own = id ?? String(line);
  return {
    conversation: {
      id: own,
      task: task ?? own,
      messages: toMessages({ raw: messages, odd }),
      reward,
      ...(reference && { reference }),
      ...(tools && { tools: tools.map(toTool) }),
    },
    unread: Object.keys(parsed.data).filter((field) => !lineFields.includes(field)),
  };
}

type Outcome = {
  reward?: number | null | undefined;
  passed?: boolean | null | undefined;
  success?: boolean | null | undefined;
};

/** The reward, or what is wrong with it. */
function rewardOf({ reward, passed, success, ...others }: Outcome): number | string {
  const told = passed ?? success;
  if (passed != null && success != null && passed !== success)
    return `passed is ${passed} and success is ${success}; leave one of them out`;
  if (reward == null && told == null)
    return (
      `says nothing of how it ended (its fields: ${Object.keys(others).join(', ')}); ` +
      'give "reward" (0 to 1, where 1 is success), "passed" or "success" (true or false)'
    );
  if (reward != null && told != null && reward >= 1 !== told)
    return `reward is ${reward}, which is ${reward >= 1 ? 'a' : 'no'} success, and ${passed == null ? 'success' : 'passed'} is ${told}; leave one of them out`;
  return reward ?? (told ? 1 : 0);
}

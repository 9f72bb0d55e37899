/** Reads the reward of a program or its grader: a number, or a JSON object with `reward`. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { type Evaluation, evaluationSchema } from '../../domain/environment';
import { firstIssue } from '../../domain/issues';
import { jsonText } from '../../domain/messages';

const toldSchema = evaluationSchema
  .omit({ output: true })
  .extend({ breakdown: evaluationSchema.shape.breakdown.default({}) });
/** Reads the last line that is not empty. Throws an Error that says what is wrong with it. */
export function rewardIn(text: string): Evaluation {
  const line = text.trimEnd().split('\n').at(-1)?.trim() ?? '';
  const { data: told, error: noJson } = jsonText.safeParse(line);
  const value = typeof told === 'number' ? { reward: told } : told;
  const { data, error } = toldSchema.safeParse(value);
  if (data) return data;
  const why = noJson ? noJson.issues[0]?.message : firstIssue(error, value);
  const problem = line === '' ? 'there is none' : `the last line is ${JSON.stringify(line.slice(0, 200))}: ${why}`;
  throw new Error(`${problem}; write a last line such as {"reward": 0.5}`);
}

const FILE_BYTES = 64 * 1024;

/** Reads a file that a program has left, but no pipe and no link. Throws an Error that says what is wrong with it. */
export async function rewardInFile(path: string): Promise<Evaluation> {
  const problem = `${path} has to be a file, no link, of at most ${FILE_BYTES / 1024} KiB`;
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: NodeJS.ErrnoException) => {
      throw error.code === 'ELOOP' ? new Error(problem) : error;
    },
  );
  try {
    const stat = await file.stat();
    if (!stat.isFile() || stat.size > FILE_BYTES) throw new Error(problem);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(FILE_BYTES));
    return rewardIn(buffer.toString('utf8', 0, bytesRead));
  } finally {
    await file.close();
  }
}

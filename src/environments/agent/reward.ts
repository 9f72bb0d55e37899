/** What a program or its grader tells of a task: a number, or a JSON object with `reward`. */
import { z } from 'zod';
import { type Evaluation, evaluationSchema } from '../../domain/environment';
import { jsonText } from '../../domain/messages';
import { firstIssue } from '../protocol';

const toldSchema = evaluationSchema
  .omit({ output: true })
  .extend({ breakdown: evaluationSchema.shape.breakdown.default({}) });
const rewardSchema = jsonText.pipe(
  z.preprocess((value) => (typeof value === 'number' ? { reward: value } : value), toldSchema),
);

/** Of the last line that is not empty. Throws an Error that says what is wrong with it. */
export function rewardIn(text: string): Evaluation {
  const line = text.trimEnd().split('\n').at(-1)?.trim() ?? '';
  const { data, error } = rewardSchema.safeParse(line);
  if (data) return data;
  const problem = line === '' ? 'there is none' : `${firstIssue(error)}: ${JSON.stringify(line.slice(0, 200))}`;
  throw new Error(`${problem}; write a last line such as {"reward": 0.5}`);
}

/** Reads the reward of a program or its grader: a number, or a JSON object with `reward`. */
import { type Evaluation, evaluationSchema } from '../../domain/environment';
import { firstIssue } from '../../domain/issues';
import { jsonText } from '../../domain/messages';

const rewardSchema = evaluationSchema
  .omit({ output: true })
  .extend({ breakdown: evaluationSchema.shape.breakdown.default({}) });
/** Reads the last line that is not empty. Throws an Error that says what is wrong with it. */
export function rewardIn(text: string): Evaluation {
  const line = text.trimEnd().split('\n').at(-1)?.trim() ?? '';
  const { data: json, error: noJson } = jsonText.safeParse(line);
  const value = typeof json === 'number' ? { reward: json } : json;
  const { data, error } = rewardSchema.safeParse(value);
  if (data) return data;
  const why = noJson ? noJson.issues[0]?.message : firstIssue(error, value);
  const problem = line === '' ? 'there is none' : `the last line is ${JSON.stringify(line.slice(0, 200))}: ${why}`;
  throw new Error(`${problem}; write a last line such as {"reward": 0.5}`);
}

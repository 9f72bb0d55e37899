/** Reads one line of JSON lines: a conversation, how it ended, and what it was offered. */
import { z } from 'zod';
import { type Reference, referenceSchema, rewardSchema } from '../domain/environment';
import { reasonOf } from '../domain/failures';
import { firstIssue } from '../domain/issues';
import type { Message, ToolSchema } from '../domain/messages';
import { isSuccess } from '../domain/rollout';
import { cut } from '../domain/transcript';
import { fieldsIn, toLine } from './forms';
import { readJson } from './json';
import { contentSchema, rawMessagesSchema, toMessages } from './messages';

export interface Conversation {
  id: string;
  /** Attempts at one task share it. */
  task: string;
  messages: Message[];
  /** 0 to 1; 1 is success. */
  reward: number;
  reference?: Reference;
  /** Tools that the agent was offered, where the file has them. */
  tools?: ToolSchema[];
}

const fields = <T>() => z.record(z.string(), z.unknown() as z.ZodType<T>);

const toolShape = {
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: fields().nullish(),
  /** Anthropic's name for them. */
  input_schema: fields().nullish(),
};
const toolsSchema = z
  .array(
    z
      .union([
        z.looseObject({ function: z.looseObject(toolShape) }).transform((tool) => tool.function),
        z.looseObject(toolShape),
      ])
      .transform(({ name, description, parameters, input_schema }): ToolSchema => ({
        name,
        description: description ?? '',
        parameters: parameters ?? input_schema ?? { type: 'object', properties: {} },
      })),
  )
  .nullish();

/** tau-bench calls the required facts `outputs`. */
const rawReferenceSchema = z
  .strictObject({
    actions: z.array(z.looseObject({ name: z.string(), arguments: fields().default({}) })).default([]),
    tell: z.array(z.string()).optional(),
    outputs: z.array(z.string()).optional(),
  })
  .transform(({ actions, tell, outputs }) => referenceSchema.parse({ actions, tell: tell ?? outputs ?? [] }));

const idSchema = z
  .union([z.string().min(1), z.number()], 'expected text')
  .transform(String)
  .nullish();
const outcome = z.boolean('expected true or false (a number belongs into "reward")').nullish();

const lineSchema = z.looseObject({
  id: idSchema,
  task: idSchema,
  messages: rawMessagesSchema,
  reward: z
    .custom<number>(
      (value) => value === 'NaN' || rewardSchema.safeParse(value).success,
      'expected a number from 0 to 1, where 1 is success (true or false belongs into "passed")',
    )
    // Python writes NaN for a reward that was never given.
    .transform((value) => rewardSchema.safeParse(value).data)
    .nullish(),
  passed: outcome,
  success: outcome,
  reference: rawReferenceSchema.nullish(),
  tools: toolsSchema,
  /** Anthropic's place for the system message. */
  system: contentSchema,
});
type Line = z.infer<typeof lineSchema>;

/**
 * Reads a line, which is text or a value. Returns a string that describes the problem, or undefined for a conversation that failed (infrastructure).
 * `name`: the id of a line without one.
 */
export function readLine(line: unknown, name: string, warnings: string[]): Conversation | string | undefined {
  let value: Record<string, unknown>;
  try {
    value = toLine(fieldsIn(typeof line === 'string' ? readJson(line) : line));
  } catch (error) {
    return `is no JSON (${reasonOf(error)}): ${JSON.stringify(line).slice(0, 60)}; write each conversation as one line of JSON`;
  }
  if (hasFailed(value)) {
    warnings.push('a conversation with an error and no reward or answer is left out');
    return undefined;
  }
  if (value['messages'] === undefined)
    return `messages: missing (its fields: ${fieldsOf(value)}); convert it as docs/conversations.md shows`;
  const { data, error } = lineSchema.safeParse(value);
  if (!data) return firstIssue(error, value);
  const reward = readReward(data);
  if (typeof reward === 'string') return reward;
  const unread = Object.keys(data).filter((field) => !Object.hasOwn(lineSchema.shape, field) && data[field] != null);
  if (unread.length > 0) warnings.push(`fields that are not read: ${unread.join(', ')}`);
  const { messages, reference, system, tools } = data;
  const id = data.id ?? name;
  if (system) warnings.push('system is read as the first message, and numbered so');
  return {
    id,
    task: data.task ?? id,
    messages: toMessages([...(system ? [{ role: 'system' as const, content: system }] : []), ...messages], warnings),
    reward,
    ...(reference && { reference }),
    ...(tools && { tools }),
  };
}

/** Returns true for an infrastructure failure: an error in a conversation that has no answer of the agent, or no grade. */
function hasFailed({ error, reward, passed, success, messages }: Record<string, unknown>): boolean {
  const isSilent = Array.isArray(messages) && !messages.some((one) => fieldsIn(one)['role'] === 'assistant');
  return Boolean(error) && (isSilent || (reward ?? passed ?? success) == null);
}

const fieldsOf = (value: Readonly<Record<string, unknown>>): string =>
  cut(
    Object.keys(value)
      .filter((field) => value[field] != null)
      .join(', '),
    200,
  );

/** Returns the reward, or what is wrong with it. */
function readReward(line: Line): number | string {
  const { reward, passed, success } = line;
  const succeeded = passed ?? success;
  if (passed != null && success != null && passed !== success)
    return `passed is ${passed} and success is ${success}; leave one of them out`;
  if (reward == null && succeeded == null)
    return (
      `says nothing of how it ended (its fields: ${fieldsOf(line)}); ` +
      'give "reward" (0 to 1, where 1 is success; NaN is none), "passed" or "success" (true or false)'
    );
  if (reward != null && succeeded != null && isSuccess({ reward }) !== succeeded)
    return `reward is ${reward}, which is ${succeeded ? 'no' : 'a'} success, and ${passed == null ? 'success' : 'passed'} is ${succeeded}; leave one of them out`;
  return reward ?? (succeeded ? 1 : 0);
}

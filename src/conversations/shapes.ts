/**
 * The shapes that are read: chat messages, tool calls and tool definitions of the OpenAI dialect, and a line of JSONL. Invariant: every
 * complaint reads on after `FIELD is VALUE; it must be`.
 */
import { z } from 'zod';
import { referenceSchema } from '../domain/environment';

const must = (what: string) => ({ error: what });

const text = (what = 'text') => z.string(must(what));
const fields = <T>(what: string) => z.record(z.string(), z.unknown() as z.ZodType<T>, must(what));

const contentSchema = z
  .union(
    [
      z.string(),
      z.array(z.union([z.string(), z.looseObject({ type: z.string().optional(), text: z.string().optional() })])),
      z.null(),
    ],
    must('text, or a list of parts such as {"type": "text", "text": "..."}'),
  )
  .optional();
export type Content = z.infer<typeof contentSchema>;

const argumentsSchema = z
  .union(
    [z.string(), z.record(z.string(), z.unknown()), z.null()],
    must('JSON text of an object, such as "{\\"id\\": 1}"'),
  )
  .optional();

/** OpenAI puts name and arguments under `function`; Inspect has the name there and the arguments beside it. */
const callSchema = z.looseObject(
  {
    id: text("the call's id, as text").optional(),
    function: z.union(
      [z.looseObject({ name: z.string(), arguments: argumentsSchema }), z.string()],
      must('an object such as {"name": "...", "arguments": "{...}"}'),
    ),
    arguments: argumentsSchema,
  },
  must('an object such as {"id": "...", "type": "function", "function": {"name": "...", "arguments": "{...}"}}'),
);
export type RawCall = z.infer<typeof callSchema>;

const calls = z.array(callSchema, must('a list of calls')).nullable().optional();

export const rawMessageSchema = z.discriminatedUnion(
  'role',
  [
    z.looseObject({ role: z.enum(['system', 'developer']), content: contentSchema }),
    z.looseObject({ role: z.literal('user'), content: contentSchema }),
    z.looseObject({ role: z.literal('assistant'), content: contentSchema, tool_calls: calls }),
    z.looseObject({
      role: z.literal('tool'),
      content: contentSchema,
      tool_call_id: text('the id of the call that it answers, as text').nullable().optional(),
    }),
  ],
  {
    error: (issue) =>
      issue.code === 'invalid_union' ? 'system, developer, user, assistant or tool' : 'an object with role and content',
  },
);
export type RawMessage = z.infer<typeof rawMessageSchema>;

export const rawMessagesSchema = z
  .array(rawMessageSchema, must('a list of messages in the OpenAI dialect'))
  .refine(
    (messages) => messages.some(({ role }) => role === 'assistant'),
    must('a list with a message of the assistant'),
  );

const toolShape = {
  name: text("the tool's name").min(1),
  description: z.string().nullish(),
  parameters: fields('a JSON schema').nullish(),
};
export const rawToolSchema = z.union(
  [z.looseObject({ function: z.looseObject(toolShape) }).transform((tool) => tool.function), z.looseObject(toolShape)],
  must(
    'an OpenAI tool such as {"type": "function", "function": {"name": "...", "description": "...", "parameters": {...}}}',
  ),
);

const actions = z.array(
  z.looseObject(
    { name: text("the tool's name"), arguments: fields('an object').default({}) },
    must('an object with name and arguments'),
  ),
  must('a list of {"name": "...", "arguments": {...}}'),
);
const told = z.array(text(), must('a list of texts'));
/** tau-bench says `outputs` for what must be told. */
export const rawReferenceSchema = z
  .looseObject(
    { actions: actions.default([]), tell: told.optional(), outputs: told.optional() },
    must('an object with actions and tell'),
  )
  .transform(({ actions, tell, outputs }) => referenceSchema.parse({ actions, tell: tell ?? outputs ?? [] }));

const idSchema = z
  .union([z.string().min(1), z.number()], must('text'))
  .transform(String)
  .nullish();
const outcome = z.boolean(must('true or false')).nullish();

/** One line of JSONL. */
export const lineSchema = z.looseObject(
  {
    id: idSchema,
    task: idSchema,
    messages: rawMessagesSchema,
    reward: z
      .number(must('a number from 0 to 1, where 1 is success'))
      .min(0, must('a number from 0 to 1, where 1 is success; scale it'))
      .max(1, must('a number from 0 to 1, where 1 is success; scale it, or give "passed": true or false'))
      .nullish(),
    passed: outcome,
    success: outcome,
    reference: rawReferenceSchema.nullish(),
    tools: z.array(rawToolSchema, must('a list of OpenAI tool definitions')).nullish(),
  },
  must('an object with messages and reward'),
);
export const lineFields: readonly string[] = Object.keys(lineSchema.shape);

/**
 * Conversations that somebody has already: the shapes that files may have (chat messages, calls and tools of the OpenAI dialect), what is wrong
 * with one that has another, and their messages as the method's. Invariants: a message becomes one message in the same place, so that an index
 * is one into the file's messages; every complaint reads on after `FIELD is VALUE; it must be`.
 */
import { z } from 'zod';
import { type Reference, referenceSchema, rewardSchema, roundReward } from '../domain/environment';
import { isSuccess } from '../domain/rollout';
import { isTooDeep as isDeeper, type Message, readArguments, type ToolCall, type ToolSchema } from '../domain/messages';

export interface Conversation {
  id: string;
  /** Attempts at one task share it. */
  task: string;
  messages: Message[];
  /** 0 to 1; 1 is success. */
  reward: number;
  reference?: Reference;
  /** Tools that the agent was offered, where the file tells. */
  tools?: ToolSchema[];
}

/** What one file holds. If it has `problems`, nothing of it is used. */
export interface FileContents {
  conversations: Conversation[];
  /** Each names file, line, field, value and fix. */
  problems: string[];
  /** Sentences about what was left out or read in another way than it is written. */
  notes: string[];
}

const SHOWN = 60;

/** At most so many of one conversation: the rest follows from the first, or is like it. */
const PER_CONVERSATION = 3;

export function problemsIn(error: z.ZodError, value: unknown): string[] {
  return error.issues.slice(0, PER_CONVERSATION).map(({ path, message }) => {
    const found = valueAt(value, path);
    const field = dotted(path) || 'the line';
    return found === undefined
      ? `${field} is missing; it must be ${message}`
      : `${field} is ${clipped(found)}; it must be ${message}`;
  });
}

/** What is nested deeper can't be written again. */
const DEEPEST = 200;
export const isTooDeep = (value: unknown): boolean => isDeeper(value, DEEPEST);

/** A value as one short line. */
export function clipped(value: unknown): string {
  const text = isTooDeep(value) ? `nested deeper than ${DEEPEST}` : (JSON.stringify(value) ?? String(value));
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | null | undefined)?.[key], value);

const dotted = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text ? `${text}.${String(key)}` : String(key)),
    '',
  );

export const must = (what: string) => ({ error: what });

const text = (what = 'text') => z.string(must(what));
const fields = <T>(what: string) => z.record(z.string(), z.unknown() as z.ZodType<T>, must(what));

export const contentSchema = z
  .union(
    [
      z.string(),
      z.array(z.union([z.string(), z.looseObject({ type: z.string().optional(), text: z.string().optional() })])),
      z.null(),
    ],
    must('text, or a list of parts such as {"type": "text", "text": "..."}'),
  )
  .optional();
type Content = z.infer<typeof contentSchema>;

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
type RawCall = z.infer<typeof callSchema>;

const calls = z.array(callSchema, must('a list of calls')).nullable().optional();

const rawMessageSchema = z.discriminatedUnion(
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
  .refine((messages) => !isTooDeep(messages), must(`a list nested no deeper than ${DEEPEST}`))
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
const texts = z.array(text(), must('a list of texts'));
/** tau-bench says `outputs` for what must be told. */
const rawReferenceSchema = z
  .looseObject(
    { actions: actions.default([]), tell: texts.optional(), outputs: texts.optional() },
    must('an object with actions and tell'),
  )
  .transform(({ actions, tell, outputs }) => referenceSchema.parse({ actions, tell: tell ?? outputs ?? [] }));

const idSchema = z
  .union([z.string().min(1), z.number()], must('text'))
  .transform(String)
  .nullish();
const outcome = z.boolean(must('true or false')).nullish();

/** How a conversation ended. */
export const outcomeFields = {
  reward: z
    .custom<number>(
      (value) => rewardSchema.safeParse(value).success,
      must('a number from 0 to 1, where 1 is success; scale it, or give "passed": true or false'),
    )
    .transform(roundReward)
    .nullish(),
  passed: outcome,
  success: outcome,
};

/** One line of JSONL. */
export const lineSchema = z.looseObject(
  {
    id: idSchema,
    task: idSchema,
    messages: rawMessagesSchema,
    ...outcomeFields,
    reference: rawReferenceSchema.nullish(),
    tools: z.array(rawToolSchema, must('a list of OpenAI tool definitions')).nullish(),
  },
  must('an object with messages and reward'),
);

type Outcome = z.infer<z.ZodObject<typeof outcomeFields>>;

/** The reward, or what is wrong with it. */
export function rewardOf({ reward, passed, success, ...others }: Outcome): number | string {
  const outcome = passed ?? success;
  if (passed != null && success != null && passed !== success)
    return `passed is ${passed} and success is ${success}; leave one of them out`;
  if (reward == null && outcome == null)
    return (
      `says nothing of how it ended (its fields: ${Object.keys(others).join(', ')}); ` +
      'give "reward" (0 to 1, where 1 is success), "passed" or "success" (true or false)'
    );
  if (reward != null && outcome != null && isSuccess({ reward }) !== outcome)
    return `reward is ${reward}, which is ${outcome ? 'no' : 'a'} success, and ${passed == null ? 'success' : 'passed'} is ${outcome}; leave one of them out`;
  return reward ?? (outcome ? 1 : 0);
}

/** Adds to `oddities` whatever is read in another way than it is written. */
export function toMessages(raw: readonly RawMessage[], oddities: string[]): Message[] {
  /** Calls without an answer so far, oldest first: for answers that name none. */
  const open: string[] = [];
  return raw.map((message, n): Message => {
    const content = contentText(message.content, oddities);
    if (message.role === 'user') return { role: 'user', content };
    if (message.role === 'tool') {
      const toolCallId = message.tool_call_id ?? open[0] ?? `call_${n}`;
      const at = open.indexOf(toolCallId);
      if (at >= 0) open.splice(at, 1);
      return { role: 'tool', toolCallId, content };
    }
    if (message.role !== 'assistant') return { role: 'system', content };
    const toolCalls = (message.tool_calls ?? []).map((call, i) => toCall(call, `call_${n}_${i}`, oddities));
    open.push(...toolCalls.map(({ id }) => id));
    return { role: 'assistant', content, ...(toolCalls.length > 0 && { toolCalls }) };
  });
}

function contentText(content: Content, oddities: string[]): string {
  if (typeof content === 'string') return content;
  const texts = (content ?? []).flatMap((part) => {
    if (typeof part === 'string') return [part];
    const { type = 'part', text } = part;
    const isThought = THOUGHTS.includes(type);
    if (text !== undefined && !isThought) return [text];
    oddities.push(`content of type ${type} is ${isThought ? 'left out' : `shown as [${type}]`}`);
    return isThought ? [] : [`[${type}]`];
  });
  return texts.join('\n');
}

/** Nobody but the agent saw its reasoning. */
const THOUGHTS = ['reasoning', 'thinking', 'redacted_thinking'];

function toCall(call: RawCall, id: string, oddities: string[]): ToolCall {
  const named = typeof call.function === 'string' ? { name: call.function, arguments: call.arguments } : call.function;
  return { id: call.id ?? id, name: named.name, ...toArguments(named.arguments, oddities) };
}

/** What is no JSON object is what the agent wrote all the same: it stays visible. */
function toArguments(
  raw: z.infer<typeof argumentsSchema>,
  oddities: string[],
): Pick<ToolCall, 'arguments' | 'argumentsText'> {
  if (typeof raw !== 'string') return { arguments: raw ?? {} };
  if (['', 'null'].includes(raw.trim())) return { arguments: {} };
  const given = readArguments(raw);
  if (given) return given;
  oddities.push('arguments of a call that are no JSON object are shown as {"not an object": TEXT}');
  return { arguments: { 'not an object': raw } };
}

export const toTool = ({ name, description, parameters }: z.infer<typeof rawToolSchema>): ToolSchema => ({
  name,
  description: description ?? '',
  parameters: parameters ?? { type: 'object', properties: {} },
});

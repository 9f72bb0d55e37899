/**
 * Conversations that somebody has already: the shapes that files may have, what is wrong with one that has another, and their messages as the method's.
 * One conversion reads the dialects of OpenAI (old and new), Anthropic and Inspect. Invariants: what was said or done is in the result, or the line is
 * refused, or a note says what is left out; every complaint reads on after `FIELD is VALUE; it must be`.
 */
import { z } from 'zod';
import { type Reference, referenceSchema, rewardSchema, roundReward } from '../domain/environment';
import { isSuccess } from '../domain/rollout';
import {
  callText,
  isTooDeep as isDeeper,
  type Message,
  readArguments,
  type ToolCall,
  type ToolSchema,
} from '../domain/messages';
import { countsOf } from '../domain/statistics';
import { mapLeaves } from './json';

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
  const short = typeof value === 'string' ? value.slice(0, SHOWN + 1) : value;
  const text = isTooDeep(value)
    ? `nested deeper than ${DEEPEST}`
    : typeof short === 'number'
      ? String(short)
      : (JSON.stringify(short) ?? String(short));
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

const partSchema = z.looseObject({ type: z.string().optional() });
const partsSchema = z.array(z.union([z.string(), partSchema]));
export const contentSchema = z
  .union([z.string(), partsSchema, z.null()], must('text, or a list of parts such as {"type": "text", "text": "..."}'))
  .optional();
type Content = z.infer<typeof contentSchema>;
type Part = z.infer<typeof partSchema>;

const argumentsSchema = z
  .union(
    [z.string(), z.record(z.string(), z.unknown()), z.null()],
    must('JSON text of an object, such as "{\\"id\\": 1}"'),
  )
  .optional();

const CALL = 'an object such as {"name": "...", "arguments": "{...}"}';
const functionSchema = z.looseObject({ name: z.string(), arguments: argumentsSchema }, must(CALL));

/** OpenAI puts name and arguments under `function`, or `custom` for free text; Inspect has the name there and the arguments beside it. */
const callSchema = z
  .looseObject(
    {
      id: text("the call's id, as text").nullish(),
      function: z.union([functionSchema, z.string()], must(CALL)).nullish(),
      custom: z.looseObject({ name: z.string(), input: z.string() }, must('an object with name and input')).nullish(),
      arguments: argumentsSchema,
      /** Inspect's: why the arguments that the model wrote could not be read. */
      parse_error: text().nullish(),
    },
    must('an object such as {"id": "...", "type": "function", "function": {"name": "...", "arguments": "{...}"}}'),
  )
  .refine((call) => (call.function ?? call.custom) != null, { path: ['function'], error: CALL });
type RawCall = z.infer<typeof callSchema>;

const calls = z.array(callSchema, must('a list of calls')).nullish();

const unknown = z.unknown().optional();
/** Fields that hold what only the model read. */
const reasoningShape = {
  ...{ reasoning: unknown, reasoning_content: unknown, reasoning_details: unknown },
  ...{ thinking: unknown, thinking_blocks: unknown },
};

/** A message has these fields; others are noted. */
const shared = { content: contentSchema };
const resultShape = {
  ...shared,
  tool_call_id: text('the id of the call that it answers, as text').nullish(),
  /** The tool's name, by OpenAI and by Inspect. */
  name: text("the tool's name").nullish(),
  function: text("the tool's name").nullish(),
  error: unknown,
  is_error: z.boolean(must('true or false')).nullish(),
};
const rawMessageSchema = z.discriminatedUnion(
  'role',
  [
    z.looseObject({ role: z.enum(['system', 'developer']), ...shared }),
    z.looseObject({ role: z.enum(['user']), ...shared, tool_calls: calls }),
    z.looseObject({
      role: z.enum(['assistant']),
      ...shared,
      tool_calls: calls,
      function_call: functionSchema.nullish(),
      refusal: text().nullish(),
      audio: z.looseObject({ transcript: z.string().nullish() }, must('an object with transcript')).nullish(),
      ...reasoningShape,
    }),
    z.looseObject({ role: z.enum(['tool', 'function']), ...resultShape }),
  ],
  {
    error: (issue) =>
      issue.code === 'invalid_union'
        ? 'system, developer, user, assistant, tool or function'
        : 'an object with role and content',
  },
);
export type RawMessage = z.infer<typeof rawMessageSchema>;

const READ_FIELDS = new Map(
  rawMessageSchema.options.flatMap(({ shape }) =>
    shape.role.options.map((role) => [role as string, new Set(Object.keys(shape))] as const),
  ),
);

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
  /** Anthropic's name for them. */
  input_schema: fields('a JSON schema').nullish(),
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
const outcome = z.boolean(must('true or false; where it is a number, call it "reward"')).nullish();

/** How a conversation ended. */
export const outcomeFields = {
  reward: z
    .custom<number>(
      (value) => Number.isNaN(value) || rewardSchema.safeParse(value).success,
      must('a number from 0 to 1, where 1 is success; scale it, or give "passed": true or false'),
    )
    .transform((value) => (Number.isNaN(value) ? value : roundReward(value)))
    .nullish(),
  passed: outcome,
  success: outcome,
};

const toolsSchema = z.array(rawToolSchema, must('a list of OpenAI tool definitions')).nullish();

/** One line of JSONL. */
export const lineSchema = z.looseObject(
  {
    id: idSchema,
    task: idSchema,
    messages: rawMessagesSchema,
    ...outcomeFields,
    reference: rawReferenceSchema.nullish(),
    tools: toolsSchema,
    /** OpenAI's older name of tools. */
    functions: toolsSchema,
    /** Anthropic's place for the system message. */
    system: contentSchema,
  },
  must('an object with messages and reward'),
);

type Outcome = z.infer<z.ZodObject<typeof outcomeFields>>;

/** The reward, or what is wrong with it. */
export function rewardOf({ reward: given, passed, success, ...others }: Outcome): number | string {
  // Python's NaN is a reward that was never given.
  const reward = Number.isNaN(given) ? undefined : given;
  const outcome = passed ?? success;
  if (passed != null && success != null && passed !== success)
    return `passed is ${passed} and success is ${success}; leave one of them out`;
  if (reward == null && outcome == null)
    return (
      `${given == null ? '' : `reward is ${given}, which is none: it `}says nothing of how it ended (its fields: ${Object.keys(others).join(', ')}); ` +
      'give "reward" (0 to 1, where 1 is success), "passed" or "success" (true or false)'
    );
  if (reward != null && outcome != null && isSuccess({ reward }) !== outcome)
    return `reward is ${reward}, which is ${outcome ? 'no' : 'a'} success, and ${passed == null ? 'success' : 'passed'} is ${outcome}; leave one of them out`;
  return reward ?? (outcome ? 1 : 0);
}

/** Counts from which the notes of a file are made. */
export interface Noted {
  /** Forms that are converted when they are read. */
  oddities: string[];
  /** Fields of messages that are not read. */
  unread: string[];
  /** Fields of messages that say nothing of the conversation, and are not noted. */
  ignored?: ReadonlySet<string>;
}

export const openNotes = (ignored: readonly string[] = []): Noted => ({
  oddities: [],
  unread: [],
  ignored: new Set(ignored),
});

const times = (texts: readonly string[]) => [...countsOf(texts)].map(([text, count]) => `${text} (${count})`);

export const unreadNote = (what: string, fields: readonly string[]): string[] =>
  fields.length > 0 ? [`${what} that are not read: ${times(fields).join(', ')}`] : [];

export const notesOf = ({ oddities, unread }: Noted): string[] => [
  ...unreadNote('fields of messages', unread),
  ...times(oddities),
];

/** Part of a message: what was said, a call, or a call's result. */
type Piece =
  | { kind: 'text'; text: string }
  | { kind: 'call'; id: string | undefined; call: Omit<ToolCall, 'id'> }
  | { kind: 'result'; id: string | undefined; name: string | undefined; text: string };

/** Converts messages in order. A message becomes one, unless it holds results beside other content: then each result is a message of its own. */
export function toMessages(raw: readonly RawMessage[], noted: Noted): Message[] {
  const messages: Message[] = [];
  const calls = openCalls();
  for (const message of raw) {
    noteUnread(message, noted);
    const before = messages.length;
    const pieces = piecesOf(message, noted);
    let [texts, own]: [string[], ToolCall[]] = [[], []];
    const flush = () => {
      const content = message.role === 'assistant' ? withoutThoughts(texts.join('\n'), noted) : texts.join('\n');
      const role = message.role === 'assistant' || message.role === 'user' ? message.role : 'system';
      if (role === 'system') messages.push({ role, content });
      else messages.push({ role, content, ...(own.length > 0 && { toolCalls: own }) });
      [texts, own] = [[], []];
    };
    for (const piece of pieces) {
      if (piece.kind === 'text') texts.push(piece.text);
      else if (piece.kind === 'call') {
        const id = calls.begin(piece.id, { n: messages.length, name: piece.call.name, by: message.role });
        own.push({ id, ...piece.call });
      } else {
        if (texts.length + own.length > 0) flush();
        const { toolCallId, requestor } = calls.answer(piece, messages.length, noted);
        messages.push({ role: 'tool', toolCallId, content: piece.text, ...(requestor && { requestor }) });
      }
    }
    if (texts.length + own.length > 0 || messages.length === before) flush();
    if (messages.length > before + 1)
      noted.oddities.push('a message that holds results beside other content is read as several, and numbered so');
  }
  return messages;
}

function noteUnread(message: RawMessage, { unread, ignored }: Noted): void {
  for (const [field, value] of Object.entries(message))
    if (!READ_FIELDS.get(message.role)?.has(field) && !ignored?.has(field) && !isEmpty(value)) unread.push(field);
}

const isEmpty = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === '' ||
  Number.isNaN(value) ||
  (typeof value === 'object' && Object.keys(value).length === 0);

function piecesOf(message: RawMessage, noted: Noted): Piece[] {
  const said = contentPieces(message.content, noted);
  if (message.role === 'assistant') {
    const { refusal, audio, function_call, tool_calls } = message;
    if (Object.keys(reasoningShape).some((field) => !isEmpty(message[field])))
      noted.oddities.push(leftOut('reasoning'));
    if (audio && !audio.transcript) noted.oddities.push(shownAs('audio'));
    return [
      ...said,
      ...(audio ? [textPiece(audio.transcript || '[audio]')] : []),
      ...(refusal ? [textPiece(refusal)] : []),
      ...(function_call ? [callPiece({ function: function_call }, noted)] : []),
      ...(tool_calls ?? []).map((call) => callPiece(call, noted)),
    ];
  }
  if (message.role === 'user') return [...said, ...(message.tool_calls ?? []).map((call) => callPiece(call, noted))];
  if (message.role !== 'tool' && message.role !== 'function') return [textPiece(textOf(said))];
  const { tool_call_id, name, function: tool, error, is_error } = message;
  const results = said.filter(({ kind }) => kind === 'result');
  const others = said.filter(({ kind }) => kind !== 'result');
  const text = withError(textOf(others), is_error ? error || true : error);
  const own: Piece = { kind: 'result', id: tool_call_id ?? undefined, name: name ?? tool ?? undefined, text };
  return results.length > 0 && text === '' ? results : [own, ...results];
}

const textPiece = (text: string): Piece => ({ kind: 'text', text });

/** One text of all pieces: within a result or a system message a call has no other place. */
const textOf = (pieces: readonly Piece[]): string =>
  pieces.map((piece) => (piece.kind === 'call' ? callText(piece.call) : piece.text)).join('\n');

const leftOut = (type: string) => `content of type ${type} is left out`;
const shownAs = (type: string) => `content of type ${type} is shown as [${type}]`;

function contentPieces(content: Content, noted: Noted): Piece[] {
  if (typeof content === 'string') return content === '' ? [] : [textPiece(content)];
  return (content ?? []).flatMap((part) => (typeof part === 'string' ? [textPiece(part)] : partPieces(part, noted)));
}

/** Nobody but the agent saw its reasoning. */
const THOUGHTS = ['reasoning', 'thinking', 'redacted_thinking'];
const MEDIA = /^(?:input_|output_)?(?:image|image_url|image_file|audio|video|video_url|file|document|data)$/;

function partPieces(part: Part, noted: Noted): Piece[] {
  const { type = 'part', text } = part;
  const { oddities } = noted;
  if (THOUGHTS.includes(type)) {
    oddities.push(leftOut(type));
    return [];
  }
  if (/(?:^|_)tool_use$/.test(type) && typeof part['name'] === 'string') {
    const { id, name, input, arguments: given, result, error } = part as Record<string, unknown>;
    const call = { name: name as string, ...toArguments(input ?? given, noted) };
    // Inspect keeps the result of a server's tool beside the call.
    const ended = !isEmpty(result) || !isEmpty(error);
    return [
      { kind: 'call', id: idOf(id), call },
      ...(ended
        ? [
            {
              kind: 'result' as const,
              id: idOf(id),
              name: call.name,
              text: withError(resultText(result, noted), error),
            },
          ]
        : []),
    ];
  }
  if (/(?:^|_)tool_result$/.test(type)) {
    const { content = text, tool_use_id, is_error, error } = part as Record<string, unknown>;
    const answer = withError(resultText(content, noted), is_error === true ? error || true : error);
    return [{ kind: 'result', id: idOf(tool_use_id), name: undefined, text: answer }];
  }
  if (typeof text === 'string') return [textPiece(text)];
  if (type === 'refusal' && typeof part['refusal'] === 'string') return [textPiece(part['refusal'])];
  if (type === 'text' && isEmpty(text)) return [];
  const isMedia = MEDIA.test(type);
  oddities.push(isMedia ? shownAs(type) : `content of type ${type} is shown as JSON`);
  return [textPiece(isMedia ? `[${type}]` : JSON.stringify(part))];
}

const idOf = (id: unknown): string | undefined => (typeof id === 'string' ? id : undefined);

/** Content of any shape, as text. */
function resultText(content: unknown, noted: Noted): string {
  if (isEmpty(content)) return '';
  const parsed = contentSchema.safeParse(content);
  return parsed.success ? textOf(contentPieces(parsed.data, noted)) : JSON.stringify(content);
}

/** A result as the agent saw it, with the error in words: some logs keep it apart, others have a mark alone. */
function withError(text: string, error: unknown): string {
  if (isEmpty(error) || error === false) return text;
  const { message, type } = (typeof error === 'object' ? error : {}) as { message?: unknown; type?: unknown };
  const words = typeof error === 'string' ? error : typeof message === 'string' ? message : JSON.stringify(error);
  const head = typeof type === 'string' ? `error (${type})` : 'error';
  const isTold = error === true || (text !== '' && text.includes(words));
  if (text === '' && error === true) return head;
  return isTold ? `${head}: ${text}` : [text, `${head}: ${words}`].filter(Boolean).join('\n');
}

const THINKING = /<think(?:ing)?(?:\s[^<>]*)?>/g;
const THOUGHT = /<\/think(?:ing)?>/g;

/**
 * What an agent said without its inline thinking: each block in tags, all before an end without a beginning (some templates write the beginning
 * into the prompt), and a thought at the beginning that never ends.
 */
function withoutThoughts(content: string, { oddities }: Noted): string {
  const marks = [...content.matchAll(THINKING), ...content.matchAll(THOUGHT)].sort((a, b) => a.index - b.index);
  const kept: string[] = [];
  let [at, begun]: [number, number | undefined] = [0, undefined];
  for (const { 0: tag, index } of marks) {
    const isEnd = tag.startsWith('</');
    if (!isEnd) begun ??= index;
    else if (begun !== undefined || at === 0) {
      if (begun !== undefined) kept.push(content.slice(at, begun));
      [at, begun] = [index + tag.length, undefined];
    }
  }
  const rest = begun !== undefined && content.slice(at, begun).trim() === '' ? '' : content.slice(at);
  if (at === 0 && rest === content) return content;
  oddities.push(leftOut('reasoning'));
  return [...kept, rest].join('').trim();
}

/** Matches results with calls. Ids may be missing, empty, or the same in every turn; within a conversation each call gets its own. */
function openCalls() {
  interface Opened {
    raw: string | undefined;
    id: string;
    name: string;
    requestor: 'user' | undefined;
    answered: boolean;
  }
  const all: Opened[] = [];
  const ids = new Set<string>();
  return {
    begin(raw: string | undefined, { n, name, by }: { n: number; name: string; by: string }): string {
      let id = raw || `call_${n}_${all.length}`;
      while (ids.has(id)) id = `${id}_${all.length}`;
      ids.add(id);
      all.push({ raw: raw || undefined, id, name, requestor: by === 'user' ? 'user' : undefined, answered: false });
      return id;
    },
    /** The result's call: the one that it names, of several with this id the oldest without a result; else the oldest of its tool; else the oldest. */
    answer({ id: raw, name }: { id: string | undefined; name: string | undefined }, n: number, { oddities }: Noted) {
      const open = all.filter(({ answered }) => !answered);
      const call = raw
        ? (open.find((one) => one.raw === raw) ??
          all.findLast((one) => one.raw === raw) ??
          open.find((one) => one.raw === undefined && (!name || one.name === name)))
        : (open.find((one) => one.name === name) ?? (name ? undefined : open[0]));
      if (!call) {
        if (name) oddities.push(`a result of ${name} answers no call and is shown without its name`);
        return { toolCallId: raw || `call_${n}`, requestor: undefined };
      }
      call.answered = true;
      return { toolCallId: call.id, requestor: call.requestor };
    },
  };
}

function callPiece(call: Partial<RawCall>, noted: Noted): Piece {
  const { id, function: called, custom, parse_error } = call;
  const named = typeof called === 'string' ? { name: called, arguments: call.arguments } : called;
  const { name, arguments: raw } = named ?? { name: custom?.name ?? '', arguments: undefined };
  const given = custom && !named ? { arguments: { input: custom.input } } : toArguments(raw, noted);
  const read = parse_error ? { arguments: { ...given.arguments, 'parse error': parse_error } } : given;
  return { kind: 'call', id: id ?? undefined, call: { name, ...read } };
}

const isFields = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What is no JSON object is what the agent wrote all the same: it stays visible. */
function toArguments(raw: unknown, { oddities }: Noted): Pick<ToolCall, 'arguments' | 'argumentsText'> {
  if (raw === undefined || raw === null) return { arguments: {} };
  if (isFields(raw)) return { arguments: withTextNumbers(raw) };
  if (typeof raw === 'string' && ['', 'null'].includes(raw.trim())) return { arguments: {} };
  const given = typeof raw === 'string' ? readArguments(raw) : undefined;
  if (given) return given;
  oddities.push('arguments of a call that are no JSON object are shown as {"not an object": TEXT}');
  return { arguments: { 'not an object': withTextNumbers(raw) } };
}

/** NaN and infinities as text, which JSON would write as null. */
const withTextNumbers = <Value>(value: Value): Value =>
  mapLeaves(value, (leaf) => (typeof leaf === 'number' && !Number.isFinite(leaf) ? String(leaf) : leaf)) as Value;

export const toTool = ({ name, description, parameters, input_schema }: z.infer<typeof rawToolSchema>): ToolSchema => ({
  name,
  description: description ?? '',
  parameters: parameters ?? input_schema ?? { type: 'object', properties: {} },
});

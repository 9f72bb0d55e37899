/**
 * Converts messages from elsewhere into the method's. One conversion reads the dialects of OpenAI (old and new), Anthropic and Inspect. Invariant: what
 * was said or done is in the result, or the line is refused, or a warning names what is left out.
 */
import { z } from 'zod';
import { callText, isTooDeep, type Message, readArguments, type ToolCall } from '../domain/messages';
import { mapLeaves } from './json';

const partSchema = z.looseObject({ type: z.string().optional() });
export const contentSchema = z.union([z.string(), z.array(z.union([z.string(), partSchema])), z.null()]).optional();
type Content = z.infer<typeof contentSchema>;
type Part = z.infer<typeof partSchema>;

const argumentsSchema = z.union([z.string(), z.record(z.string(), z.unknown()), z.null()]).optional();
const functionSchema = z.looseObject({ name: z.string(), arguments: argumentsSchema });

/** OpenAI puts name and arguments under `function`, or `custom` for free text; Inspect has the name there and the arguments beside it. */
const callSchema = z
  .looseObject({
    id: z.string().nullish(),
    function: z.union([functionSchema, z.string()]).nullish(),
    custom: z.looseObject({ name: z.string(), input: z.string() }).nullish(),
    arguments: argumentsSchema,
    /** Inspect's reason why the arguments that the model wrote could not be read. */
    parse_error: z.string().nullish(),
  })
  .refine((call) => (call.function ?? call.custom) != null, {
    path: ['function'],
    error: 'expected an object such as {"name": "...", "arguments": "{...}"}',
  });
type RawCall = z.infer<typeof callSchema>;

const calls = z.array(callSchema).nullish();
const unknown = z.unknown().optional();
/** Fields that only the model read. */
const reasoningShape = {
  ...{ reasoning: unknown, reasoning_content: unknown, reasoning_details: unknown },
  ...{ thinking: unknown, thinking_blocks: unknown },
};
const resultShape = {
  content: contentSchema,
  tool_call_id: z.string().nullish(),
  /** The tool's name, by OpenAI and by Inspect. */
  name: z.string().nullish(),
  function: z.string().nullish(),
  error: unknown,
  is_error: z.boolean().nullish(),
};

/** A message is read by these fields; a warning names others. */
const rawMessageSchema = z.discriminatedUnion(
  'role',
  [
    z.looseObject({ role: z.enum(['system', 'developer']), content: contentSchema }),
    z.looseObject({ role: z.enum(['user']), content: contentSchema, tool_calls: calls }),
    z.looseObject({
      role: z.enum(['assistant']),
      content: contentSchema,
      tool_calls: calls,
      function_call: functionSchema.nullish(),
      refusal: z.string().nullish(),
      audio: z.looseObject({ transcript: z.string().nullish() }).nullish(),
      ...reasoningShape,
    }),
    z.looseObject({ role: z.enum(['tool', 'function']), ...resultShape }),
  ],
  { error: 'expected system, developer, user, assistant, tool or function' },
);
type RawMessage = z.infer<typeof rawMessageSchema>;

const READ_FIELDS = new Map(
  rawMessageSchema.options.flatMap(({ shape }) =>
    shape.role.options.map((role) => [role as string, new Set(Object.keys(shape))] as const),
  ),
);

/** Values that are nested deeper cannot be written as JSON again. */
export const DEEPEST = 200;

export const rawMessagesSchema = z
  .array(rawMessageSchema)
  .refine((messages) => !isTooDeep(messages, DEEPEST), `expected a list nested no deeper than ${DEEPEST}`)
  .refine((messages) => messages.some(({ role }) => role === 'assistant'), 'expected a message of the assistant');

export interface Warnings {
  /** Sentences about what is left out, or read in another way than it is written. */
  warnings: string[];
  /** Fields of messages that are no part of the conversation: no warning names them. */
  ignored?: readonly string[];
}

type Piece =
  | { kind: 'text'; text: string }
  | { kind: 'call'; id: string | undefined; call: Omit<ToolCall, 'id'> }
  | { kind: 'result'; id: string | undefined; name: string | undefined; text: string };

/** Converts messages in order. A message becomes one, unless it holds results beside other content: then each result is a message of its own. */
export function toMessages(raw: readonly RawMessage[], { warnings, ignored = [] }: Warnings): Message[] {
  const messages: Message[] = [];
  const calls = openCalls();
  for (const message of raw) {
    const { role } = message;
    for (const [field, value] of Object.entries(message))
      if (!READ_FIELDS.get(role)?.has(field) && !ignored.includes(field) && !isEmpty(value))
        warnings.push(`field ${field} of messages is not read`);
    const before = messages.length;
    let [texts, own]: [string[], ToolCall[]] = [[], []];
    const flush = () => {
      const content = role === 'assistant' ? withoutThoughts(texts.join('\n'), warnings) : texts.join('\n');
      if (role === 'assistant' || role === 'user')
        messages.push({ role, content, ...(own.length > 0 && { toolCalls: own }) });
      else messages.push({ role: 'system', content });
      [texts, own] = [[], []];
    };
    for (const piece of piecesOf(message, warnings)) {
      if (piece.kind === 'text') texts.push(piece.text);
      else if (piece.kind === 'call') {
        const id = calls.begin(piece.id, { n: messages.length, name: piece.call.name, by: role });
        own.push({ id, ...piece.call });
      } else {
        if (texts.length + own.length > 0) flush();
        messages.push({ role: 'tool', ...calls.answer(piece, messages.length, warnings), content: piece.text });
      }
    }
    if (texts.length + own.length > 0 || messages.length === before) flush();
    if (messages.length > before + 1)
      warnings.push('a message that holds results beside other content is read as several, and numbered so');
  }
  return messages;
}

const isEmpty = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === '' ||
  Number.isNaN(value) ||
  (typeof value === 'object' && Object.keys(value).length === 0);

function piecesOf(message: RawMessage, warnings: string[]): Piece[] {
  const said = contentPieces(message.content, warnings);
  if (message.role === 'assistant') {
    const { refusal, audio, function_call, tool_calls } = message;
    if (Object.keys(reasoningShape).some((field) => !isEmpty(message[field]))) warnings.push(leftOut('reasoning'));
    if (audio && !audio.transcript) warnings.push(shownAs('audio'));
    return [
      ...said,
      ...(audio ? [textPiece(audio.transcript || '[audio]')] : []),
      ...(refusal ? [textPiece(refusal)] : []),
      ...(function_call ? [callPiece({ function: function_call }, warnings)] : []),
      ...(tool_calls ?? []).map((call) => callPiece(call, warnings)),
    ];
  }
  if (message.role === 'user') return [...said, ...(message.tool_calls ?? []).map((call) => callPiece(call, warnings))];
  if (message.role !== 'tool' && message.role !== 'function') return [textPiece(textOf(said))];
  const { tool_call_id, name, function: tool, error, is_error } = message;
  const results = said.filter(({ kind }) => kind === 'result');
  const text = withError(textOf(said.filter(({ kind }) => kind !== 'result')), is_error ? error || true : error);
  const own = resultPiece(tool_call_id, name ?? tool, text);
  return results.length > 0 && text === '' ? results : [own, ...results];
}

const textPiece = (text: string): Piece => ({ kind: 'text', text });
const resultPiece = (id: unknown, name: string | null | undefined, text: string): Piece => ({
  ...{ kind: 'result', id: idOf(id), name: name ?? undefined, text },
});
const idOf = (id: unknown): string | undefined => (typeof id === 'string' ? id : undefined);

/** Joins all pieces: within a result or a system message a call has no other place. */
const textOf = (pieces: readonly Piece[]): string =>
  pieces.map((piece) => (piece.kind === 'call' ? callText(piece.call) : piece.text)).join('\n');

const leftOut = (type: string) => `content of type ${type} is left out`;
const shownAs = (type: string) => `content of type ${type} is shown as [${type}]`;

function contentPieces(content: Content, warnings: string[]): Piece[] {
  if (typeof content === 'string') return content === '' ? [] : [textPiece(content)];
  return (content ?? []).flatMap((part) => (typeof part === 'string' ? [textPiece(part)] : partPieces(part, warnings)));
}

/** Only the agent saw its reasoning. */
const THOUGHTS = ['reasoning', 'thinking', 'redacted_thinking'];
const MEDIA = /^(?:input_|output_)?(?:image|image_url|image_file|audio|video|video_url|file|document|data)$/;

function partPieces(part: Part, warnings: string[]): Piece[] {
  const { type = 'part', text, name, id, tool_use_id, error, is_error, refusal, content = text } = part;
  if (THOUGHTS.includes(type)) {
    warnings.push(leftOut(type));
    return [];
  }
  if (/(?:^|_)tool_use$/.test(type) && typeof name === 'string') {
    const { input, arguments: given, result } = part;
    const call: Piece = { kind: 'call', id: idOf(id), call: { name, ...toArguments(input ?? given, warnings) } };
    // Inspect keeps the result of a server's tool beside the call.
    if (isEmpty(result) && isEmpty(error)) return [call];
    return [call, resultPiece(id, name, withError(resultText(result, warnings), error))];
  }
  if (/(?:^|_)tool_result$/.test(type)) {
    const answer = withError(resultText(content, warnings), is_error === true ? error || true : error);
    return [resultPiece(tool_use_id, undefined, answer)];
  }
  if (typeof text === 'string') return [textPiece(text)];
  if (type === 'refusal' && typeof refusal === 'string') return [textPiece(refusal)];
  if (type === 'text' && isEmpty(text)) return [];
  const isMedia = MEDIA.test(type);
  warnings.push(isMedia ? shownAs(type) : `content of type ${type} is shown as JSON`);
  return [textPiece(isMedia ? `[${type}]` : JSON.stringify(part))];
}

/** Content of any shape, as text. */
function resultText(content: unknown, warnings: string[]): string {
  if (isEmpty(content)) return '';
  const parsed = contentSchema.safeParse(content);
  return parsed.success ? textOf(contentPieces(parsed.data, warnings)) : JSON.stringify(content);
}

/** Adds to a result the error that the agent saw: some logs keep it apart, others have a mark alone. */
function withError(text: string, error: unknown): string {
  if (isEmpty(error) || error === false) return text;
  const { message, type } = (typeof error === 'object' ? error : {}) as { message?: unknown; type?: unknown };
  const words = typeof error === 'string' ? error : typeof message === 'string' ? message : JSON.stringify(error);
  const head = typeof type === 'string' ? `error (${type})` : 'error';
  if (text === '' && error === true) return head;
  const isTold = error === true || (text !== '' && text.includes(words));
  return isTold ? `${head}: ${text}` : [text, `${head}: ${words}`].filter(Boolean).join('\n');
}

const THINKING = /<think(?:ing)?(?:\s[^<>]*)?>/g;
const THOUGHT = /<\/think(?:ing)?>/g;

/**
 * Removes an agent's inline thinking: each block in tags, all before an end without a beginning (some templates write the beginning into the
 * prompt), and a thought at the beginning that never ends.
 */
function withoutThoughts(content: string, warnings: string[]): string {
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
  warnings.push(leftOut('reasoning'));
  return [...kept, rest].join('').trim();
}

interface OpenCall {
  raw: string | undefined;
  id: string;
  name: string;
  by: string;
  answered: boolean;
}

/** Matches results with calls. Ids may be missing, empty, or the same in every turn; within a conversation each call gets its own. */
function openCalls() {
  const all: OpenCall[] = [];
  return {
    begin(given: string | undefined, { n, ...call }: { n: number; name: string; by: string }): string {
      let id = given || `call_${n}_${all.length}`;
      while (all.some((one) => one.id === id)) id = `${id}_${all.length}`;
      all.push({ raw: given || undefined, id, ...call, answered: false });
      return id;
    },
    /** Finds the call that the result names, of several with this id the oldest without a result; else the oldest of its tool; else the oldest. */
    answer({ id: raw, name }: { id: string | undefined; name: string | undefined }, n: number, warnings: string[]) {
      const open = all.filter(({ answered }) => !answered);
      const call = raw
        ? (open.find((one) => one.raw === raw) ??
          all.findLast((one) => one.raw === raw) ??
          open.find((one) => one.raw === undefined && (!name || one.name === name)))
        : (open.find((one) => one.name === name) ?? (name ? undefined : open[0]));
      if (!call) {
        if (name) warnings.push(`a result of ${name} answers no call and is shown without its name`);
        return { toolCallId: raw || `call_${n}` };
      }
      call.answered = true;
      return { toolCallId: call.id, ...(call.by === 'user' && { requestor: 'user' as const }) };
    },
  };
}

function callPiece(call: Partial<RawCall>, warnings: string[]): Piece {
  const { id, function: called, custom, parse_error } = call;
  const named = typeof called === 'string' ? { name: called, arguments: call.arguments } : called;
  const { name, arguments: raw } = named ?? { name: custom?.name ?? '', arguments: undefined };
  const given = custom && !named ? { arguments: { input: custom.input } } : toArguments(raw, warnings);
  const read = parse_error ? { arguments: { ...given.arguments, 'parse error': parse_error } } : given;
  return { kind: 'call', id: id ?? undefined, call: { name, ...read } };
}

/** What is no JSON object is what the agent wrote all the same: it stays visible. */
function toArguments(raw: unknown, warnings: string[]): Pick<ToolCall, 'arguments' | 'argumentsText'> {
  if (raw == null || (typeof raw === 'string' && ['', 'null'].includes(raw.trim()))) return { arguments: {} };
  if (typeof raw === 'object' && !Array.isArray(raw)) return { arguments: withTextNumbers(raw) };
  const given = typeof raw === 'string' ? readArguments(raw) : undefined;
  if (given) return given;
  warnings.push('arguments of a call that are no JSON object are shown as {"not an object": TEXT}');
  return { arguments: { 'not an object': withTextNumbers(raw) } };
}

/** Writes NaN and infinities, which JSON would write as null, as text. */
const withTextNumbers = <Value>(value: Value): Value & Record<string, unknown> =>
  mapLeaves(value, (leaf) => (typeof leaf === 'number' && !Number.isFinite(leaf) ? String(leaf) : leaf)) as Value &
    Record<string, unknown>;

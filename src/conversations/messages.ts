/**
 * Converts messages of OpenAI, Anthropic and Inspect into the method's. Invariant: all content is in the result, or the line is rejected, or a warning
 * names the part that is left out.
 */
import { z } from 'zod';
import { callText, type Message, readArguments, type ToolCall } from '../domain/messages';
import { fieldsIn } from './forms';

const partSchema = z.looseObject({ type: z.string().optional() });
export const contentSchema = z.union([z.string(), z.array(z.union([z.string(), partSchema])), z.null()]).optional();
type Content = z.infer<typeof contentSchema>;
type Part = z.infer<typeof partSchema>;

const argumentsSchema = z.union([z.string(), z.record(z.string(), z.unknown()), z.null()]).optional();

/** OpenAI puts name and arguments under `function`; Inspect has the name there and the arguments beside it. */
const callSchema = z.looseObject({
  id: z.string().nullish(),
  function: z.union(
    [z.looseObject({ name: z.string(), arguments: argumentsSchema }), z.string()],
    'expected an object such as {"name": "...", "arguments": "{...}"}',
  ),
  arguments: argumentsSchema,
});
type RawCall = z.infer<typeof callSchema>;

/** Brings a call into Inspect's form: verifiers writes it as text, AgentDojo has `args`, tau2-bench and LangChain have `name`. */
function plainCall(raw: unknown) {
  const { name, args, ...call } = fieldsIn(typeof raw === 'string' ? readArguments(raw)?.arguments : raw);
  return { function: name, arguments: args, ...call };
}

const calls = z.array(z.preprocess(plainCall, callSchema)).nullish();
const unknown = z.unknown().optional();
/** Fields that only the model read. */
const reasoningShape = {
  ...{ reasoning: unknown, reasoning_content: unknown, reasoning_details: unknown },
  ...{ thinking: unknown, thinking_blocks: unknown },
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
      function_call: z.null('write it as tool_calls').optional(),
      refusal: z.string().nullish(),
      ...reasoningShape,
    }),
    z.looseObject({
      role: z.enum(['tool']),
      content: contentSchema,
      tool_call_id: z.string().nullish(),
      /** The tool's name, by OpenAI and by Inspect. */
      name: unknown,
      function: unknown,
      error: unknown,
    }),
  ],
  { error: 'expected system, developer, user, assistant or tool' },
);
type RawMessage = z.infer<typeof rawMessageSchema>;

const READ_FIELDS = new Map(
  rawMessageSchema.options.flatMap(({ shape }) =>
    shape.role.options.map((role) => [role as string, new Set(Object.keys(shape))] as const),
  ),
);

export const rawMessagesSchema = z
  .array(rawMessageSchema)
  .refine((messages) => messages.some(({ role }) => role === 'assistant'), 'expected a message of the assistant');

/** Fields of messages that are no part of the conversation: no warning names them. */
const IGNORED =
  /^(id|source|model|metadata|internal|type|stop_reason|requestor|turn_idx|timestamp|cost|usage|raw_data|tool_call)$/;

type Piece =
  | { kind: 'text'; text: string }
  | { kind: 'call'; id: string | undefined; call: Omit<ToolCall, 'id'> }
  | { kind: 'result'; id: string | undefined; text: string };

/**
 * Converts messages in order. Adds warnings about parts that are left out or reinterpreted. A message becomes one, unless it holds
 * results beside other content: then each result is a message of its own.
 */
export function toMessages(raw: readonly RawMessage[], warnings: string[]): Message[] {
  const messages: Message[] = [];
  const calls = openCalls();
  for (const message of raw) {
    const { role } = message;
    for (const [field, value] of Object.entries(message))
      if (!READ_FIELDS.get(role)?.has(field) && !IGNORED.test(field) && !isEmpty(value))
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
      else if (piece.kind === 'call') own.push({ id: calls.begin(piece.id, role), ...piece.call });
      else {
        if (texts.length + own.length > 0) flush();
        messages.push({ role: 'tool', ...calls.answer(piece.id), content: piece.text });
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
  value === false ||
  (typeof value === 'object' && Object.keys(value).length === 0);

function piecesOf(message: RawMessage, warnings: string[]): Piece[] {
  const said = contentPieces(message.content, warnings);
  switch (message.role) {
    case 'assistant':
      if (Object.keys(reasoningShape).some((field) => !isEmpty(message[field]))) warnings.push(leftOut('reasoning'));
      return [
        ...said,
        ...(message.refusal ? [textPiece(message.refusal)] : []),
        ...(message.tool_calls ?? []).map((call) => callPiece(call, warnings)),
      ];
    case 'user':
      return [...said, ...(message.tool_calls ?? []).map((call) => callPiece(call, warnings))];
    case 'tool':
      return [{ kind: 'result', id: message.tool_call_id ?? undefined, text: withError(textOf(said), message.error) }];
    default:
      return [textPiece(textOf(said))];
  }
}

const textPiece = (text: string): Piece => ({ kind: 'text', text });

/** Joins all pieces: within a result or a system message a call has no other place. */
const textOf = (pieces: readonly Piece[]): string =>
  pieces.map((piece) => (piece.kind === 'call' ? callText(piece.call) : piece.text)).join('\n');

const leftOut = (type: string) => `content of type ${type} is left out`;

function contentPieces(content: Content, warnings: string[]): Piece[] {
  if (typeof content === 'string') return content === '' ? [] : [textPiece(content)];
  return (content ?? []).flatMap((part) => (typeof part === 'string' ? [textPiece(part)] : partPieces(part, warnings)));
}

/** Only the agent saw its reasoning. */
const THOUGHTS = ['reasoning', 'thinking', 'redacted_thinking'];
const MEDIA = /^(?:input_)?(?:image|image_url|audio|video|file|document)$/;

function partPieces(part: Part, warnings: string[]): Piece[] {
  const { type = 'part', content, name, id, tool_use_id, is_error } = part;
  // AgentDojo has `content` in place of `text`.
  const { text = type === 'text' ? content : undefined, refusal = text } = part;
  const textId = (value: unknown) => (typeof value === 'string' ? value : undefined);
  if (THOUGHTS.includes(type)) {
    warnings.push(leftOut(type));
    return [];
  }
  if (type === 'tool_use' && typeof name === 'string')
    return [{ kind: 'call', id: textId(id), call: { name, ...toArguments(part['input'], warnings) } }];
  if (type === 'tool_result') {
    const { data } = contentSchema.safeParse(content);
    const result = data === undefined ? JSON.stringify(content ?? '') : textOf(contentPieces(data, warnings));
    return [{ kind: 'result', id: textId(tool_use_id), text: withError(result, is_error) }];
  }
  if (typeof refusal === 'string') return [textPiece(refusal)];
  const isMedia = MEDIA.test(type);
  warnings.push(`content of type ${type} is shown as ${isMedia ? `[${type}]` : 'JSON'}`);
  return [textPiece(isMedia ? `[${type}]` : JSON.stringify(part))];
}

/** Adds to a result the error that the agent saw: some logs keep it apart, others have a mark alone. */
function withError(text: string, error: unknown): string {
  if (isEmpty(error)) return text;
  if (error === true) return `error: ${text}`;
  const { message = error } = error as { message?: unknown };
  const words = typeof message === 'string' ? message : JSON.stringify(message);
  return text.includes(words) ? `error: ${text}` : [text, `error: ${words}`].filter(Boolean).join('\n');
}

/** A block in tags, or all before an end without a beginning: some templates write the beginning into the prompt. */
const THOUGHT = /<think(?:ing)?(?:\s[^<>]*)?>[^]*?<\/think(?:ing)?>|^[^]*?<\/think(?:ing)?>/g;
const ENDLESS_THOUGHT = /^\s*<think(?:ing)?(?:\s[^<>]*)?>[^]*$/;

/** Removes an agent's inline thinking. */
function withoutThoughts(content: string, warnings: string[]): string {
  const kept = content.replace(THOUGHT, '').replace(ENDLESS_THOUGHT, '');
  if (kept === content) return content;
  warnings.push(leftOut('reasoning'));
  return kept.trim();
}

/** Matches results with calls. Ids may be missing, empty, or the same in every turn; within a conversation each call gets its own. */
function openCalls() {
  const all: { raw: string | undefined; id: string; by: string; answered: boolean }[] = [];
  return {
    begin(given: string | undefined, by: string): string {
      let id = given || `call_${all.length}`;
      while (all.some((one) => one.id === id)) id = `${id}_${all.length}`;
      all.push({ raw: given || undefined, id, by, answered: false });
      return id;
    },
    /** Finds the call that the result names, of several with this id the oldest without a result; without an id the oldest without one. */
    answer(raw: string | undefined) {
      const open = all.filter(({ answered }) => !answered);
      const call = raw ? (open.find((one) => one.raw === raw) ?? all.findLast((one) => one.raw === raw)) : open[0];
      if (!call) return { toolCallId: raw || `call_${all.length}` };
      call.answered = true;
      return { toolCallId: call.id, ...(call.by === 'user' && { requestor: 'user' as const }) };
    },
  };
}

function callPiece({ id, function: called, arguments: beside }: RawCall, warnings: string[]): Piece {
  const { name, arguments: raw } = typeof called === 'string' ? { name: called, arguments: beside } : called;
  return { kind: 'call', id: id ?? undefined, call: { name, ...toArguments(raw, warnings) } };
}

/** Reads a call's arguments. Text that is no JSON object is kept in `argumentsText`, so that it stays visible. */
function toArguments(raw: unknown, warnings: string[]): Pick<ToolCall, 'arguments' | 'argumentsText'> {
  if (raw == null || (typeof raw === 'string' && ['', 'null'].includes(raw.trim()))) return { arguments: {} };
  if (typeof raw === 'object' && !Array.isArray(raw)) return { arguments: raw as ToolCall['arguments'] };
  const given = typeof raw === 'string' ? readArguments(raw) : undefined;
  if (given) return given;
  warnings.push('arguments of a call that are no JSON object are shown as {"not an object": TEXT}');
  return { arguments: { 'not an object': raw } };
}

/**
 * Anthropic's messages, told in OpenAI's form and answered out of it, so that what serves the one serves the other. Invariant: what would change the
 * answer and has no place in that form is refused, by its name.
 */
import type { Context as Call } from 'hono';
import { z } from 'zod';
import {
  type Answer,
  chat,
  type ChatRequest,
  type Form,
  type Head,
  partsOf,
  type StreamEvent,
  type WireMessage,
} from './dialect';
import { parseBody } from './body';
import { badRequest, GatewayError, MESSAGES_PATH } from './errors';

/** Which differ in nothing that is said here. */
const VERSIONS = ['2023-06-01', '2026-10-21'];

const blockError = (known: string) => ({
  error: ({ input }: { input: unknown }) => {
    const { type } = (input ?? {}) as { type?: unknown };
    return `a block of type ${JSON.stringify(type)} can't be carried, ${known} can; leave it out`;
  },
});
const text = z.object({ type: z.literal('text'), text: z.string() });
type Block = { type: string; text?: string };
/** Blocks are paragraphs. */
const textOf = (blocks: readonly Block[]): string =>
  blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n\n');
const textSchema = partsOf(z.discriminatedUnion('type', [text], blockError('text'))).transform(textOf);

const messageSchema = z.discriminatedUnion('role', [
  z.object({
    role: z.literal('user'),
    content: partsOf(
      z.discriminatedUnion(
        'type',
        [text, z.object({ type: z.literal('tool_result'), tool_use_id: z.string(), content: textSchema.default('') })],
        blockError('text and tool_result'),
      ),
    ).refine((blocks) => blocks.length > 0, 'it is empty'),
  }),
  z.object({
    role: z.literal('assistant'),
    content: partsOf(
      z.discriminatedUnion(
        'type',
        [
          text,
          z.object({
            type: z.literal('tool_use'),
            id: z.string(),
            name: z.string(),
            input: z.record(z.string(), z.unknown()),
          }),
        ],
        blockError('text and tool_use'),
      ),
    ),
  }),
  z.object({ role: z.literal('system'), content: textSchema }),
]);

const isAlone = { disable_parallel_tool_use: z.boolean().optional() };
const unread = z.unknown().optional();

const requestSchema = z.strictObject(
  {
    model: z.string(),
    max_tokens: z.int().positive(),
    messages: z.array(messageSchema).min(1),
    system: textSchema.optional(),
    tools: z
      .array(
        z.object({
          type: z.literal('custom', "tools of Anthropic's servers can't be carried; leave it out").nullish(),
          name: z.string(),
          description: z.string().default(''),
          input_schema: z.record(z.string(), z.unknown()),
        }),
      )
      .optional(),
    tool_choice: z
      .discriminatedUnion('type', [
        z.object({ type: z.literal('auto'), ...isAlone }),
        z.object({ type: z.literal('any'), ...isAlone }),
        z.object({ type: z.literal('tool'), name: z.string(), ...isAlone }),
        z.object({ type: z.literal('none') }),
      ])
      .optional(),
    temperature: z.number().min(0).max(1).optional(),
    top_p: z.number().gt(0).max(1).optional(),
    top_k: z.int().positive().optional(),
    stop_sequences: z.array(z.string()).optional(),
    stream: z.boolean().optional(),
    metadata: z.object({ user_id: z.string().nullish() }).optional(),
    thinking: z
      .object({ type: z.literal('disabled', "thinking can't be carried; leave it out, or send disabled") })
      .optional(),
    // How it is billed and cached changes no answer.
    ...{ cache_control: unread, service_tier: unread, inference_geo: unread, speed: unread },
  },
  {
    error: (issue) =>
      issue.code === 'unrecognized_keys'
        ? `${(issue.keys as string[]).join(', ')} can't be carried; leave it out`
        : undefined,
  },
);
type MessagesRequest = z.output<typeof requestSchema>;
const countSchema = requestSchema.extend({ max_tokens: z.literal(1).default(1), stream: z.never().optional() });

function toWire(message: MessagesRequest['messages'][number], n: number): WireMessage[] {
  const { role, content } = message;
  if (role === 'system') return [{ role, content }];
  const words = textOf(content);
  if (role === 'assistant') {
    const tool_calls = content.flatMap((block) =>
      block.type === 'tool_use'
        ? [
            {
              id: block.id,
              type: 'function' as const,
              function: { name: block.name, arguments: JSON.stringify(block.input) },
            },
          ]
        : [],
    );
    return [tool_calls.length > 0 ? { role, content: words || null, tool_calls } : { role, content: words }];
  }
  if (content.some(({ type }, at) => type === 'tool_result' && content[at - 1]?.type === 'text'))
    throw badRequest(`messages.${n}.content: tool_result blocks come first; put the text behind them`, 'messages');
  const results = content.flatMap((block) =>
    block.type === 'tool_result'
      ? [{ role: 'tool' as const, tool_call_id: block.tool_use_id, content: block.content }]
      : [],
  );
  return results.length < content.length ? [...results, { role, content: words }] : results;
}

const CHOICES = { auto: 'auto', any: 'required', none: 'none' } as const;

function choiceOf(choice: MessagesRequest['tool_choice']): Partial<ChatRequest> {
  if (!choice) return {};
  return {
    tool_choice: choice.type === 'tool' ? { type: 'function', function: { name: choice.name } } : CHOICES[choice.type],
    ...('disable_parallel_tool_use' in choice && choice.disable_parallel_tool_use && { parallel_tool_calls: false }),
  };
}

function read(body: string, c: Call, schema: typeof requestSchema | typeof countSchema): ChatRequest {
  const version = c.req.header('anthropic-version');
  if (version !== undefined && !VERSIONS.includes(version))
    throw badRequest(`anthropic-version: ${version.slice(0, 40)} is not spoken here; send ${VERSIONS.join(' or ')}`);
  const { messages, system, tools, tool_choice, stop_sequences, metadata, ...asked } = parseBody<
    typeof requestSchema | typeof countSchema
  >(schema, body);
  if (messages.at(-1)!.role === 'assistant')
    throw badRequest('messages: an answer can not be begun for the policy; let a user message be the last', 'messages');
  const { model, max_tokens, temperature, top_p, top_k, stream } = asked;
  return {
    ...{ model, max_tokens, temperature, top_p, top_k, stream },
    messages: [...(system ? [{ role: 'system' as const, content: system }] : []), ...messages.flatMap(toWire)],
    ...(tools?.length && {
      tools: tools.map(({ name, description, input_schema }) => ({
        type: 'function' as const,
        function: { name, description, parameters: input_schema },
      })),
    }),
    ...choiceOf(tool_choice),
    ...(stop_sequences?.length && { stop: stop_sequences }),
    user: metadata?.user_id ?? undefined,
  };
}

const REASONS: Record<string, string> = { tool_calls: 'tool_use', length: 'max_tokens', content_filter: 'refusal' };

interface Told {
  content: ({ type: 'text'; text: string; citations: null } | { type: 'tool_use'; input: unknown })[];
  stop: { stop_reason: string | null; stop_sequence: string | null; stop_details: null };
  usage: object;
}

function toldOf({ content, calls, finish, stop, usage }: Answer): Told {
  return {
    content: [
      ...(content ? [{ type: 'text' as const, text: content, citations: null }] : []),
      ...calls.map(({ id, function: { name, arguments: text } }) => ({
        type: 'tool_use' as const,
        ...{ id, name, input: JSON.parse(text) as unknown, caller: { type: 'direct' } },
      })),
    ],
    stop: {
      stop_reason: stop !== undefined ? 'stop_sequence' : (REASONS[finish] ?? 'end_turn'),
      stop_sequence: stop ?? null,
      stop_details: null,
    },
    usage: usageOf(usage?.prompt_tokens, usage?.completion_tokens),
  };
}

const usageOf = (input_tokens = 0, output_tokens = 0) => ({
  input_tokens,
  output_tokens,
  cache_creation_input_tokens: null,
  cache_read_input_tokens: null,
});

const messageOf = ({ id, model }: Head, { content, stop, usage }: Told) => ({
  id: `msg_${id}`,
  type: 'message',
  role: 'assistant',
  model,
  content,
  ...stop,
  usage,
  container: null,
});

const messages: Form = {
  read: (body, c) => read(body, c, requestSchema),

  whole: (head, answer) => messageOf(head, toldOf(answer)),

  teller(head) {
    const answer: Answer = { content: null, calls: [], finish: 'stop', logprobs: null };
    const nothing = { content: [], stop: { stop_reason: null, stop_sequence: null, stop_details: null } };
    let spoken = false;
    const speak = (text: string): StreamEvent[] => {
      const start = { index: 0, content_block: { type: 'text', text: '', citations: null } };
      const begun = spoken ? [] : [event('content_block_start', start)];
      spoken = true;
      return [...begun, event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })];
    };
    return {
      begin: () => [event('message_start', { message: messageOf(head, { ...nothing, usage: usageOf() }) })],
      part({ content, ...more }) {
        Object.assign(answer, more);
        return content ? speak(content) : [];
      },
      end() {
        const { content, stop, usage } = toldOf(answer);
        return [
          ...(spoken ? [event('content_block_stop', { index: 0 })] : []),
          ...content
            .filter((block) => block.type === 'tool_use')
            .flatMap((block, n) => {
              const index = spoken ? n + 1 : n;
              const delta = { type: 'input_json_delta', partial_json: JSON.stringify(block.input) };
              return [
                event('content_block_start', { index, content_block: { ...block, input: {} } }),
                event('content_block_delta', { index, delta }),
                event('content_block_stop', { index }),
              ];
            }),
          event('message_delta', { delta: stop, usage }),
          event('message_stop'),
        ];
      },
    };
  },
};

const event = (type: string, more: object = {}): StreamEvent => ({ name: type, data: { type, ...more } });

/** How many tokens a conversation has, of a server of any kind: one more is sampled, and what stood before it is told. */
export const counting: Form = {
  ...messages,
  read: (body, c) => read(body, c, countSchema),
  whole: (_, { usage }) => ({ input_tokens: usage?.prompt_tokens }),
};
export const COUNT_PATH = `${MESSAGES_PATH}/count_tokens`;

/** The forms in which clients ask, by their paths. */
export const forms: readonly [path: string, form: Form][] = [
  ['/v1/chat/completions', chat],
  [MESSAGES_PATH, messages],
];

/** For who asks elsewhere. */
export const notThere = ({ req }: Call): GatewayError =>
  new GatewayError(
    404,
    `there is no ${req.method} ${req.path.slice(0, 200)}; ask ${forms.map(([path]) => `POST ${path}`).join(' or ')}`,
    { code: 'not_found' },
  );

/** A bearer token, and what Anthropic's clients send in its place. */
export const keysIn = (c: Call): string[] =>
  [/^Bearer (.*)$/i.exec(c.req.header('authorization') ?? '')?.[1], c.req.header('x-api-key')].flatMap(
    (key) => key ?? [],
  );

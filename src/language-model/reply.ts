/**
 * Reads a reply from the response of an endpoint: streamed, or one JSON completion where it does not stream. Invariant: a reply is whole, with
 * the reason for which it ended, or there is none; of one that broke off it is known what was heard of it.
 */
import type OpenAI from 'openai';
import { APIError } from 'openai';
import { Stream } from 'openai/core/streaming';
import { z } from 'zod';
import { tokensOf, type ModelUsage } from '../domain/endpoints';
import type { ModelReply, Question } from './types';

/** Some endpoints give content as parts, of which the text is the reply. */
const contentSchema = z
  .union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))])
  .nullish()
  .transform((content) => {
    if (!Array.isArray(content)) return content ?? '';
    return content.map(({ type, text = '' }) => (type === 'text' ? text : '')).join('');
  });
const messageSchema = z.object({
  content: contentSchema,
  refusal: z.string().nullish(),
  /** By two names: reasoning that is no part of the reply. */
  reasoning_content: z.string().nullish().catch(null),
  reasoning: z.string().nullish().catch(null),
});
const tokens = z.number().int().nonnegative();
const usageSchema = z
  .object({
    prompt_tokens: tokens,
    completion_tokens: tokens,
    prompt_tokens_details: z.object({ cached_tokens: tokens.nullish() }).nullish().catch(null),
  })
  .nullish()
  .catch(null);
const choiceOf = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z.object({ finish_reason: z.string().nullish(), ...shape });
const chunkSchema = z.object({
  choices: z.array(choiceOf({ delta: messageSchema.partial().nullish() })).default([]),
  usage: usageSchema,
});
const completionSchema = z.object({
  choices: z.array(choiceOf({ message: messageSchema })).min(1),
  usage: usageSchema,
});
type Message = { [Field in keyof z.infer<typeof messageSchema>]?: z.infer<typeof messageSchema>[Field] | undefined };
type Usage = z.infer<typeof usageSchema>;

const usageIn = z.object({ usage: usageSchema });

/** What a whole completion says that it used; undefined where it does not say. */
export function usageTold(completion: unknown): ModelUsage | undefined {
  const usage = usageIn.safeParse(completion).data?.usage;
  return usage ? toModelUsage(usage) : undefined;
}

const toModelUsage = (told: NonNullable<Usage>): ModelUsage => ({
  promptTokens: told.prompt_tokens,
  cachedTokens: told.prompt_tokens_details?.cached_tokens ?? 0,
  completionTokens: told.completion_tokens,
});

/** An endpoint that goes on for more than so many characters a token, and what is written around them, heeds no limit. */
const LONGEST_TOKEN = 100;
const AROUND = 100_000;

interface ReadReply {
  client: OpenAI;
  response: Response;
  reply: PartialReply;
}

export async function readReply(o: ReadReply): Promise<ModelReply> {
  const { response, reply } = o;
  if (/event-stream/i.test(response.headers.get('content-type') ?? '')) return streamed(o);
  const text = await bodyOf(response, reply);
  if (/^\s*(data|event|id|retry)?:/.test(text)) return streamed({ ...o, response: new Response(text) });
  const body = jsonOf(text);
  const error = (body as { error?: object } | null)?.error;
  if (error) throw new APIError(undefined, error, undefined, response.headers);
  const { choices, usage } = parseCompletion(completionSchema, body);
  const [{ message, finish_reason } = { message: {} }] = choices;
  reply.add(message);
  // Whatever is missing here is not missing for want of an end.
  return reply.ended({ finish: finish_reason ?? 'stop', usage });
}

async function streamed({ client, response, reply }: ReadReply): Promise<ModelReply> {
  reply.begun = true;
  let finish: string | undefined;
  let usage: Usage;
  // Aborted for silence, a stream ends like one that has an end.
  for await (const chunk of Stream.fromSSEResponse<unknown>(response, new AbortController(), client)) {
    const { choices, usage: told } = parseCompletion(chunkSchema, chunk);
    usage = told ?? usage;
    const [choice] = choices;
    finish = choice?.finish_reason ?? finish;
    reply.add(choice?.delta ?? {});
  }
  if (finish === undefined) throw new Error(`the reply broke off after ${reply.characters} characters`);
  return reply.ended({ finish, usage });
}

/** A reply as it comes. */
export class PartialReply {
  private text = '';
  private refusal = '';
  private thought = 0;
  /** Set once the endpoint is answering the question: from there on it is paid for. */
  begun = false;

  constructor(
    private readonly o: {
      question: Question;
      maxTokens: number;
      /** Something has come: of the reply, or of what it thinks before. */
      onPiece: (piece: string) => void;
    },
  ) {}

  get characters(): number {
    return this.text.length;
  }

  add({ content, refusal, reasoning_content, reasoning }: Message): void {
    const thought = reasoning_content ?? reasoning ?? '';
    this.text += content ?? '';
    this.refusal += refusal ?? '';
    this.thought += thought.length;
    this.heard(thought + (content ?? ''));
    this.bound(this.text.length + this.thought);
  }

  heard(piece: string): void {
    this.o.onPiece(piece);
  }

  bound(characters: number): void {
    const { maxTokens } = this.o;
    if (characters > maxTokens * LONGEST_TOKEN + AROUND)
      throw new Error(`the reply is longer than ${maxTokens} tokens can be; does the endpoint heed max_tokens?`);
  }

  ended({ finish, usage }: { finish: string; usage: Usage }): ModelReply {
    const refused = this.refusal !== '' && this.text === '';
    return {
      text: refused ? this.refusal : this.text,
      finish: refused ? 'content_filter' : finish,
      usage: this.usage(usage),
    };
  }

  /** Where the endpoint has not told it: by what was asked and has been heard so far. */
  usage(told?: Usage): ModelUsage {
    if (told) return toModelUsage(told);
    const asked = this.o.question.messages.reduce((sum, { content }) => sum + content.length, 0);
    const said = this.text.length + this.refusal.length + this.thought;
    return { promptTokens: tokensOf(asked), cachedTokens: 0, completionTokens: tokensOf(said) };
  }
}

async function bodyOf(response: Response, reply: PartialReply): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of response.body ?? []) {
      text += decoder.decode(bytes as Uint8Array, { stream: true });
      reply.heard('');
      reply.bound(text.length);
    }
  } catch (error) {
    reply.begun = true;
    throw error;
  }
  return text + decoder.decode();
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(text.trim() === '' ? 'the answer is empty' : `the answer is no chat completion: ${text}`);
  }
}

/** The one reading of answers of the dialect. Throws where it is none. */
export function parseCompletion<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`the answer is no chat completion: ${issue?.path.join('.')}: ${issue?.message}`);
}

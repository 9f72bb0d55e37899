/**
 * What answers of the dialect say, streamed or whole. A reply is complete, with the reason for which it ended, or there is none; of one that broke
 * off it is known what came of it.
 */
import { z } from 'zod';
import { tokensOf, type ModelUsage } from '../domain/endpoints';
import { toWellFormed } from '../domain/plain-text';
import { ApiError, type Endpoint } from './endpoint';
import type { ModelReply, Question } from './model';

/** Some endpoints give content as parts, of which the text is the reply. */
const contentSchema = z
  .union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))])
  .nullish()
  .transform((content) => {
    if (!Array.isArray(content)) return content ?? '';
    return content.map(({ type, text = '' }) => (type === 'text' ? text : '')).join('');
  });
export const callSchema = z.object({ id: z.string(), function: z.object({ name: z.string(), arguments: z.string() }) });
const wordsSchema = z.object({
  content: contentSchema.optional(),
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
  .transform((told): ModelUsage => ({
    promptTokens: told.prompt_tokens,
    cachedTokens: told.prompt_tokens_details?.cached_tokens ?? 0,
    completionTokens: told.completion_tokens,
  }))
  .nullish()
  .catch(null);
const finish_reason = z.string().nullish();
const chunkSchema = z.object({
  choices: z.array(z.object({ finish_reason, delta: wordsSchema.nullish() })).default([]),
  usage: usageSchema,
});
const messageSchema = wordsSchema.extend({ tool_calls: z.array(callSchema).nullish() });
const completionSchema = z.object({
  choices: z.array(z.object({ finish_reason, message: messageSchema })).min(1),
  usage: usageSchema,
});

/** A whole answer. Throws ApiError where it is none. */
export function parseCompletion(value: unknown) {
  const { choices, usage } = parse(completionSchema, value);
  const { message: said, finish_reason: finish } = choices[0]!;
  const message = { ...said, ...(said.content !== undefined && { content: toWellFormed(said.content) }) };
  return { message, finish, usage };
}

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw incomplete(`the answer is no chat completion: ${issue?.path.join('.')}: ${issue?.message}`);
}

const incomplete = (problem: string) => new ApiError(problem, { status: 200 });

/** An endpoint that goes on for more than so many characters a token, and what is written around them, heeds no limit. */
const LONGEST_TOKEN = 100;
const AROUND = 100_000;

/** A reply as it comes. */
export class PartialReply {
  private text = '';
  private refusal = '';
  private thought = 0;
  private bytes = 0;
  /** The endpoint has begun to answer the question: from there on it is paid for. */
  begun = false;

  constructor(
    private readonly o: {
      question: Question;
      maxTokens: number;
      /** Something has come: of the reply, or of what it thinks before. */
      onText: (piece: string) => void;
    },
  ) {}

  /** Reads the answer to the request to its end. */
  async read(endpoint: Endpoint, request: Parameters<Endpoint['stream']>[0]): Promise<ModelReply> {
    let finish: string | undefined;
    let usage: ModelUsage | undefined;
    try {
      const answer = await endpoint.stream(request, {
        onBytes: (bytes) => this.received(bytes),
        onEvent: (value) => {
          this.begun = true;
          const { choices, usage: told } = parse(chunkSchema, value);
          usage = told ?? usage;
          finish = choices[0]?.finish_reason ?? finish;
          this.add(choices[0]?.delta ?? {});
        },
      });
      if (answer !== undefined) {
        const whole = parseCompletion(answer);
        this.add(whole.message);
        // Whatever is missing here is not missing for want of an end.
        return this.ended(whole.finish ?? 'stop', whole.usage);
      }
    } catch (error) {
      // With a reason for its end it is complete, though the connection was left open, or broke.
      if (finish === undefined) {
        this.begun ||= this.bytes > 0 && !(error instanceof ApiError);
        throw error;
      }
    }
    if (finish === undefined) throw incomplete(`the reply broke off after ${this.text.length} characters`);
    return this.ended(finish, usage);
  }

  private received(bytes: number): void {
    this.bytes += bytes;
    this.o.onText('');
    this.bound(this.bytes);
  }

  private add({ content = '', refusal, reasoning_content, reasoning }: Partial<z.output<typeof wordsSchema>>): void {
    const thought = reasoning_content ?? reasoning ?? '';
    this.text += content;
    this.refusal += refusal ?? '';
    this.thought += thought.length;
    this.o.onText(thought + content);
    this.bound(this.text.length + this.thought);
  }

  private bound(characters: number): void {
    const { maxTokens } = this.o;
    if (characters > maxTokens * LONGEST_TOKEN + AROUND)
      throw incomplete(`the reply is longer than ${maxTokens} tokens can be; does the endpoint heed max_tokens?`);
  }

  private ended(finish: string, usage: ModelUsage | null | undefined): ModelReply {
    const refused = this.refusal !== '' && this.text === '';
    return {
      // Pieces may end within a pair.
      text: toWellFormed(refused ? this.refusal : this.text),
      finish: refused ? 'content_filter' : finish,
      usage: usage ?? this.usage(),
    };
  }

  /** By what was asked and has come so far. */
  usage(): ModelUsage {
    const asked = this.o.question.messages.reduce((sum, { content }) => sum + content.length, 0);
    const answered = this.text.length + this.refusal.length + this.thought;
    return { promptTokens: tokensOf(asked), cachedTokens: 0, completionTokens: tokensOf(answered) };
  }
}

/**
 * A model behind an OpenAI-compatible endpoint, asked one turn at a time. Invariants: one call, one request, and no more of them at once
 * than the file allows; an answer is whole; whatever goes wrong leaves as an OutsideFailure; the key is known here only.
 */
import { z } from 'zod';
import { tokensOf, type ChatModel, type ModelUsage } from '../domain/endpoints';
import type { Message, ToolSchema } from '../domain/messages';
import { callSchema, toWireMessage, toWireTools } from '../policy/wire';
import type { OutsideFailure } from '../domain/failures';
import { keyOf, openClient } from '../language-model/endpoint';
import { usageTold } from '../language-model/reply';
import { lateAnswer, partnerFailure, unusable, type Role } from './errors';
import { createLimit } from '../domain/concurrency';
import type { Outside } from './types';

const replySchema = z.object({
  choices: z
    .array(
      z.object({
        message: z.object({ content: z.string().nullish(), tool_calls: z.array(callSchema).nullish() }),
        finish_reason: z.string().nullish(),
      }),
    )
    .min(1),
});
export type Reply = { content: string; calls: z.infer<typeof callSchema>[] };

export interface ChatRequest extends Outside {
  messages: Message[];
  tools: ToolSchema[];
  seed: number;
}

export interface OpenChatModel {
  ask(request: ChatRequest): Promise<Reply>;
  /** What makes an answer unusable, as a failure. */
  unusable(problem: string): OutsideFailure;
}

/** Throws BadInput if the key's variable is not set. */
export function openChatModel(role: Role, model: ChatModel): OpenChatModel {
  const partner = { role, model, key: keyOf(`target.${role}.apiKeyEnv`, model.apiKeyEnv) };
  const openai = openClient({ url: model.url, key: partner.key });
  // Not left to the connections: a request that waits for one is on the clock already.
  const limited = createLimit(model.concurrency);

  return {
    unusable: (problem) => unusable(partner, problem),
    ask: ({ messages, tools, seed, signal, onUsage }) =>
      limited(async () => {
        signal?.throwIfAborted();
        const deadline = AbortSignal.timeout(model.timeoutSeconds * 1000);
        const body = {
          model: model.model,
          messages: messages.map(toWireMessage),
          ...(tools.length > 0 && { tools: toWireTools(tools) }),
          max_tokens: model.maxTokens,
          temperature: model.temperature,
          top_p: model.topP,
          seed,
        };
        let answer: unknown;
        try {
          const own = AbortSignal.any(signal ? [signal, deadline] : [deadline]);
          answer = await openai.chat.completions.create(body, { signal: own });
          onUsage?.(usageOf(body, answer));
          const { cutOff, ...reply } = replyOf(answer);
          if (cutOff)
            throw unusable(partner, `an answer cut off at ${model.maxTokens} tokens: raise target.${role}.maxTokens`);
          return reply;
        } catch (error) {
          // It was asked, and is paid for, whoever still wants the answer.
          if (answer === undefined && (signal?.aborted || deadline.aborted)) onUsage?.(usageOf(body));
          signal?.throwIfAborted();
          if (deadline.aborted) throw lateAnswer(partner);
          throw partnerFailure(partner, error);
        }
      }),
  };
}

/** By what was asked and answered, where the endpoint does not tell it. */
function usageOf(body: object, answer?: unknown): ModelUsage {
  const told = usageTold(answer);
  if (told) return told;
  const said = replySchema.safeParse(answer).data?.choices[0]?.message;
  const tokens = (value: unknown) => tokensOf(JSON.stringify(value).length);
  return { promptTokens: tokens(body), cachedTokens: 0, completionTokens: said ? tokens(said) : 0 };
}

function replyOf(answer: unknown): Reply & { cutOff: boolean } {
  const parsed = replySchema.safeParse(answer);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new Error(`the answer is no chat completion: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  const { message, finish_reason } = parsed.data.choices[0]!;
  return { content: message.content ?? '', calls: message.tool_calls ?? [], cutOff: finish_reason === 'length' };
}

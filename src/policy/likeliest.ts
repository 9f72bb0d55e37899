/** What a policy's next message most likely begins with: OpenAI's top_logprobs of one token (docs/policy-server.md). */
import { z } from 'zod';
import { OutsideFailure } from '../domain/failures';
import type { Message } from '../domain/messages';
import { completionBody } from './wire';

export interface LikelyToken {
  token: string;
  /** In nats. */
  logprob: number;
}

/** The most that vLLM tells unless it is started with --max-logprobs. */
const MOST = 20;

/** One token, which nobody wants, and what it might have been. */
export const likeliestBody = ({ model, messages }: { model: string; messages: Message[] }) => ({
  ...completionBody({ model, messages, tools: [], sampling: { temperature: 0, topP: 1, maxTokens: 1 }, seed: 0 }),
  top_logprobs: MOST,
});

const answerSchema = z.object({
  choices: z.tuple([
    z.object({
      logprobs: z.object({
        content: z
          .array(z.object({ top_logprobs: z.array(z.object({ token: z.string(), logprob: z.number() })).min(1) }))
          .min(1),
      }),
    }),
  ]),
});

export function parseLikeliest(body: unknown): LikelyToken[] {
  const parsed = answerSchema.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const problem = `${issue?.path.join('.')}: ${issue?.message}; it must honour top_logprobs`;
    throw new OutsideFailure('PolicyAnswerInvalid', `policy server's answer: ${problem}`);
  }
  return parsed.data.choices[0].logprobs.content[0]!.top_logprobs;
}

/** What a policy's next message most likely begins with, and goes on with: OpenAI's top_logprobs (docs/policy-server.md). */
import { z } from 'zod';
import { OutsideFailure } from '../domain/failures';
import type { Message } from '../domain/messages';
import type { TurnRequest } from './turn';
import { completionBody } from './wire';

export interface LikelyToken {
  token: string;
  /** In nats. */
  logprob: number;
}

/** The most that vLLM tells unless it is started with --max-logprobs. */
const MOST = 20;

/** Without `sampling` one token, which nobody wants, and what it might have been. */
export const likeliestBody = ({
  sampling = { temperature: 0, topP: 1, maxTokens: 1 },
  seed = 0,
  ...asked
}: { model: string; messages: Message[] } & Partial<Pick<TurnRequest, 'sampling' | 'seed'>>) => ({
  ...completionBody({ ...asked, tools: [], sampling, seed }),
  top_logprobs: MOST,
});

const likelySchema = z.object({ token: z.string(), logprob: z.number() });
const answerSchema = z.object({
  choices: z.tuple([
    z.object({
      logprobs: z.object({
        content: z.array(likelySchema.extend({ top_logprobs: z.array(likelySchema).min(1) })).min(1),
      }),
    }),
  ]),
});

/** Of each token that was sampled, in order: itself, and what was likeliest there. */
export function parseLikeliest(body: unknown): (LikelyToken & { likeliest: LikelyToken[] })[] {
  const parsed = answerSchema.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const problem = `${issue?.path.join('.')}: ${issue?.message}; it must honour top_logprobs`;
    throw new OutsideFailure('PolicyAnswerInvalid', `policy server's answer: ${problem}`);
  }
  return parsed.data.choices[0].logprobs.content.map(({ top_logprobs: likeliest, ...own }) => ({ ...own, likeliest }));
}

/** Answers of the policy server. */
import { z } from 'zod';
import type { AssistantMessage } from '../domain/messages';
import { endOf, finishSchema, messageOf, numbered, parseAnswer, wordsSchema } from '../policy/wire';
import type { ChatRequest } from './request';

const usageSchema = z.looseObject({ prompt_tokens: z.number(), completion_tokens: z.number() });
const answerSchema = z.object({
  choices: z.tuple([
    z.object({
      message: wordsSchema,
      finish_reason: z.enum([...finishSchema.options, 'content_filter']),
    }),
  ]),
  usage: usageSchema.optional(),
});

export interface Answer {
  message: AssistantMessage;
  finish: string;
  usage?: z.output<typeof usageSchema>;
}

/**
 * Reads an answer as the campaign's rollouts do: without thoughts, with unreadable calls as text, and with calls numbered. Throws PolicyAnswerInvalid, or
 * PolicyServerError where the server aborted the request.
 */
export function readAnswer(value: unknown, { messages }: ChatRequest): Answer {
  const { choices, usage } = parseAnswer(answerSchema, value, 'the request');
  const [{ message, finish_reason }] = choices;
  const { toolCalls, ...said } = messageOf(message);
  return {
    message: { ...said, ...(toolCalls && { toolCalls: numbered(toolCalls, messages, 'call') }) },
    finish: endOf(finish_reason),
    ...(usage && { usage }),
  };
}

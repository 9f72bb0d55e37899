/**
 * The environment protocol: JSON-RPC 2.0, one message a line, on a process's stdin and stdout (docs/environments.md).
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import {
  environmentDescriptionSchema,
  evaluationSchema,
  resetResultSchema,
  splitSchema,
  stepResultSchema,
  stopReasonSchema,
  taskSchema,
} from '../domain/environment';
import { argumentsOf, messageSchema, toolSchema, type Message } from '../domain/messages';
import { jsonSchema } from './json-schema';

const episode = z.object({ episode: z.string() });

/**
 * Set: the simulated user speaks next, and this is what it has not heard yet, from where it stands: its instructions are `system`, the
 * agent's words are `user`, its own are `assistant`, results of its own calls are `tool`.
 */
const user = z.object({ user: z.array(messageSchema).optional() });

/** What a judge model is asked, one conversation a question, before the reward is known. */
const questionsSchema = z.object({ judge: z.array(z.array(messageSchema)).min(1) });

const toolSchemas = z.array(z.object({ parameters: jsonSchema, outputSchema: jsonSchema.optional() }));

/** Tools with schemas that are schemas: whoever reads them later takes them for such. */
const describedSchema = environmentDescriptionSchema.superRefine(({ tools }, context) => {
  for (const { path, message } of toolSchemas.safeParse(tools).error?.issues ?? [])
    context.addIssue({ code: 'custom', path: ['tools', ...path], message });
});

export const methods = {
  describe: { params: z.object({}), result: describedSchema },
  tasks: { params: z.object({ split: splitSchema }), result: z.object({ tasks: z.array(taskSchema) }) },
  reset: {
    params: z.object({ task: z.object({ id: z.string(), seed: z.number().int() }) }),
    /** `userTools`: what the simulated user may call. */
    result: resetResultSchema.extend({ ...episode.shape, ...user.shape, userTools: z.array(toolSchema).optional() }),
  },
  step: {
    params: episode.extend({
      message: messageSchema.refine(
        ({ role }) => role === 'assistant' || role === 'user',
        'role must be assistant (the agent) or user (the simulated user, where it was asked to speak)',
      ),
    }),
    result: stepResultSchema.extend(user.shape),
  },
  /** With `judgements`, the judge's answers to the questions of the same call without them. */
  evaluate: {
    params: episode.extend({ reason: stopReasonSchema, judgements: z.array(z.string()).optional() }),
    result: z.union([evaluationSchema, questionsSchema]),
  },
  close: { params: episode, result: z.object({}) },
} as const;
export type Method = keyof typeof methods;
export type Params<M extends Method> = z.infer<(typeof methods)[M]['params']>;
export type Result<M extends Method> = z.infer<(typeof methods)[M]['result']>;

const id = z.union([z.number(), z.string()]);
export const requestSchema = z.object({ jsonrpc: z.literal('2.0'), id, method: z.string(), params: z.unknown() });

export const responseSchema = z.union([
  z.object({ jsonrpc: z.literal('2.0'), id, result: z.unknown() }).refine((response) => 'result' in response),
  z.object({
    jsonrpc: z.literal('2.0'),
    id: id.nullable(),
    error: z.object({ code: z.number(), message: z.string() }),
  }),
]);

/** A request as a line: arguments of calls stand in it as they were written. */
export function requestLine(id: number, method: Method, params: object): string {
  const { message } = params as { message?: Message };
  const calls = (message && 'toolCalls' in message && message.toolCalls) || [];
  if (calls.every(({ argumentsText }) => argumentsText === undefined))
    return JSON.stringify({ jsonrpc: '2.0', id, method, params });
  const mark = randomUUID();
  const toolCalls = calls.map(({ argumentsText, ...call }, n) =>
    argumentsText === undefined ? call : { ...call, arguments: `${mark} ${n}` },
  );
  const line = JSON.stringify({
    jsonrpc: '2.0',
    id,
    method,
    params: { ...params, message: { ...message, toolCalls } },
  });
  return line.replace(new RegExp(`"${mark} (\\d+)"`, 'g'), (_, n) => argumentsOf(calls[Number(n)]!));
}

/** JSON-RPC's codes; the last one is ours: the environment itself has failed. */
export const errorCodes = {
  parse: -32700,
  request: -32600,
  method: -32601,
  params: -32602,
  environment: -32000,
} as const;

export function firstIssue({ issues: [issue] }: z.ZodError): string {
  return `${issue?.path.join('.') || '(all of it)'}: ${issue?.message}`;
}

/**
 * The environment protocol: JSON-RPC 2.0, one message a line, on a process's stdin and stdout (docs/environments.md); the schemas of all answers, and the
 * error for invalid ones, which names method, problem and fix.
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
import {
  argumentsOf,
  messageSchema,
  toolSchema,
  type Message,
  type AssistantMessage,
  type UserMessage,
} from '../domain/messages';
import { jsonSchema } from './json-schema';
import { type FailureType, OutsideFailure } from '../domain/failures';
import { findHalfCharacter, HALF_CHARACTER_PROBLEM } from '../domain/plain-text';
import { firstIssue } from '../domain/issues';

const episode = z.object({ episode: z.string() });

/**
 * If set, the simulated user speaks next, and these are the messages that are new to it, from its point of view: its instructions are `system`, the
 * agent's messages are `user`, its own are `assistant`, results of its own calls are `tool`.
 */
const user = z.object({ user: z.array(messageSchema).optional() });

/** The questions for a judge model, one conversation each, before the reward is known. */
const questionsSchema = z.object({ judge: z.array(z.array(messageSchema)).min(1) });

const toolSchemas = z.array(z.object({ parameters: jsonSchema, outputSchema: jsonSchema.optional() }));

/** Rollouts are played to their end: no context holds an episode of more messages of the agent. */
const MOST_STEPS = 10_000;
const maxSteps = z.number().int().positive().max(MOST_STEPS);

/** Tools whose schemas are valid, because later readers do not check them. */
const describedSchema = environmentDescriptionSchema.extend({ maxSteps }).superRefine(({ tools }, context) => {
  for (const { path, message } of toolSchemas.safeParse(tools).error?.issues ?? [])
    context.addIssue({ code: 'custom', path: ['tools', ...path], message });
});

export const methods = {
  describe: { params: z.object({}), result: describedSchema },
  tasks: { params: z.object({ split: splitSchema }), result: z.object({ tasks: z.array(taskSchema) }) },
  reset: {
    params: z.object({ task: z.object({ id: z.string(), seed: z.number().int() }) }),
    /** `userTools`: what the simulated user may call. */
    result: resetResultSchema.extend({
      maxSteps,
      ...episode.shape,
      ...user.shape,
      userTools: z.array(toolSchema).optional(),
    }),
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
  /** `judgements` holds the judge's answers to the questions that the same call returned without it. */
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

/** Returns a request as a line, with the arguments of calls as the model wrote them. */
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
  request: -32600,
  method: -32601,
  params: -32602,
  environment: -32000,
} as const;

interface EnvironmentErrorParts {
  environment: string;
  method?: Method;
  /** Begins with the field where there is one. */
  problem: string;
  fix: string;
  /** It asks for a model that the campaign does not name. */
  lacks?: 'user' | 'judge';
}

export class EnvironmentError extends OutsideFailure {
  constructor(
    type: FailureType,
    readonly parts: EnvironmentErrorParts,
  ) {
    const { environment, method, problem, fix } = parts;
    super(type, `${[environment, method, problem].filter(Boolean).join(': ')}; ${fix}`);
  }
}

export const badEnvironment = (environment: string, method: Method, problem: string, fix: string) =>
  new EnvironmentError('BadEnvironment', { environment, method, problem, fix });

const QUOTED = 300;

/** Returns the beginning of a text for an error, with its length if it is longer. */
export const quoted = (text: string, length = QUOTED): string =>
  text.length <= length ? text : `${text.slice(0, length)}... (${text.length} characters)`;

/** Returns the parsed answer. Throws BadEnvironment if it has another shape. */
export function readAnswer<S extends z.ZodType>(
  environment: string,
  method: Method,
  { schema, answer }: { schema: S; answer: unknown },
): z.infer<S> {
  const { data, error } = schema.safeParse(answer);
  if (!error) {
    const half = findHalfCharacter(data);
    if (half) throw badEnvironment(environment, method, half.join('.'), HALF_CHARACTER_PROBLEM);
    return data;
  }
  const fix = `return what docs/environments.md says of ${method}`;
  throw badEnvironment(environment, method, quoted(firstIssue(error, answer)), fix);
}

const ANSWERS_FIX =
  'answer each call with one tool message that has its id, in the order of the calls, where the call fails too ("error : ...")';

/**
 * Throws BadEnvironment unless each call of the message is answered in order, with the right requestor, and the agent gets a message before its next turn.
 * Only the end of an episode may leave calls or the message out.
 */
export function checkAnswers(
  environment: string,
  { role, toolCalls = [] }: AssistantMessage | UserMessage,
  { messages, done, user }: Result<'step'>,
): void {
  const bad = (problem: string) => badEnvironment(environment, 'step', problem, ANSWERS_FIX);
  const answers = messages.flatMap((message) => (message.role === 'tool' ? [message] : []));
  if (answers.some(({ requestor }) => requestor !== (role === 'user' ? 'user' : undefined)))
    throw bad(`messages: requestor must be ${role === 'user' ? '"user"' : 'left out'} in answers to the ${role}`);
  const calls = toolCalls.map(({ id }) => id);
  const answered = answers.map(({ toolCallId }) => toolCallId);
  const isInOrder = answered.every((id, n) => id === calls[n]);
  if (!isInOrder || (!done && answered.length < calls.length))
    throw bad(`messages: calls ${calls.join(', ')} have the answers ${quoted(answered.join(', ')) || '(none)'}`);
  if (role === 'assistant' && !done && !user && messages.length === 0)
    throw bad('messages is empty and done is false: answer the agent, let the user speak, or end the episode');
}

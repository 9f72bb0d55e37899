/** What every answer of an environment must keep, and the one error for what does not: it names method, problem and fix. */
import type { z } from 'zod';
import type { StepResult } from '../domain/environment';
import { type FailureType, OutsideFailure } from '../domain/failures';
import type { AssistantMessage, UserMessage } from '../domain/messages';
import { firstIssue, type Method } from './protocol';

export interface EnvironmentErrorParts {
  environment: string;
  method?: Method;
  /** Begins with the field where there is one. */
  problem: string;
  fix: string;
  stderr?: string;
  /** It answered nothing in time: whatever is asked next would be waited for as long. */
  silent?: boolean;
  /** It asks for a model that nobody has named. */
  lacks?: 'user' | 'judge';
}

export class EnvironmentError extends OutsideFailure {
  constructor(
    type: FailureType,
    readonly parts: EnvironmentErrorParts,
  ) {
    const { environment, method, problem, fix, stderr } = parts;
    const lastWords = stderr ? `; its last words on stderr:\n${stderr}` : '';
    super(type, `${[environment, method, problem].filter(Boolean).join(': ')}; ${fix}${lastWords}`);
  }
}

export const badEnvironment = (environment: string, method: Method, problem: string, fix: string) =>
  new EnvironmentError('BadEnvironment', { environment, method, problem, fix });

const QUOTED = 300;

/** Text of an environment's within an error: its beginning, and how long it is. */
export const quoted = (text: string, length = QUOTED): string =>
  text.length <= length ? text : `${text.slice(0, length)}... (${text.length} characters)`;

/** The answer as the schema reads it. Throws BadEnvironment if it has another shape. */
export function readAnswer<S extends z.ZodType>(
  environment: string,
  method: Method,
  { schema, answer }: { schema: S; answer: unknown },
): z.infer<S> {
  const { data, error } = schema.safeParse(answer);
  if (!error) return data;
  const fix = `return what docs/environments.md says of ${method}`;
  throw badEnvironment(environment, method, quoted(firstIssue(error)), fix);
}

const ANSWERS_FIX =
  'answer each call with one tool message that has its id, in the order of the calls, where the call fails too ("error : ...")';

/** Throws BadEnvironment unless each call of the message is answered in order, as a call of whoever made it. Only the end of an episode may leave calls out. */
export function checkAnswers(
  environment: string,
  { role, toolCalls = [] }: AssistantMessage | UserMessage,
  { messages, done }: StepResult,
): void {
  const bad = (problem: string) => badEnvironment(environment, 'step', problem, ANSWERS_FIX);
  const requestor = role === 'user' ? 'user' : undefined;
  const calls = toolCalls.map(({ id }) => id);
  let answered = 0;
  for (const [n, message] of messages.entries()) {
    if (message.role !== 'tool') continue;
    const field = `messages.${n}.toolCallId: "${quoted(message.toolCallId, 60)}"`;
    if (message.requestor !== requestor) {
      const must = requestor ? 'must have requestor "user"' : 'must have no requestor';
      throw bad(`${field} answers a call of the ${requestor ?? 'agent'}'s and ${must}`);
    }
    if (!calls.includes(message.toolCallId)) throw bad(`${field} answers no call of the message`);
    const next = calls[answered++] ?? 'no further answer';
    if (message.toolCallId !== next) throw bad(`${field} comes where ${next} should`);
  }
  if (!done && answered < calls.length) throw bad(`messages: call ${calls[answered]} has no answer`);
}

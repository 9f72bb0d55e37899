/** Errors in OpenAI's shape. Details of machines behind the gateway are logged and never sent to a client. */
import type { Context } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { isFailure, OutsideFailure, type FailureType } from '../domain/failures';
import { ApiError } from '../policy/http';
import { refusedField } from '../policy/server';

export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  constructor(
    readonly status: ContentfulStatusCode,
    message: string,
    readonly more: { param?: string | null; code?: string; retryAfterSeconds?: number } = {},
  ) {
    super(message);
  }
}

/** The client has disconnected and does not read the answer. */
export class ClientGone extends GatewayError {
  constructor() {
    super(408, 'the client has gone');
  }
}

export const badRequest = (message: string, param: string | null = null, code?: string): GatewayError =>
  new GatewayError(400, message, { param, ...(code && { code }) });

const AWAY = 'the policy server does not answer; try again in a moment';

const failures: Partial<Record<FailureType, (failure: OutsideFailure) => GatewayError>> = {
  ContextLengthExceeded: (failure) => badRequest(serverMessage(failure), 'messages', 'context_length_exceeded'),
  PolicyRequestRejected: (failure) => badRequest(serverMessage(failure), fieldOf(failure)),
  PolicyServerBusy: ({ retryAfterMs = 1000 }) =>
    new GatewayError(429, 'the policy server has no capacity; try again', {
      code: 'rate_limit_exceeded',
      retryAfterSeconds: Math.ceil(retryAfterMs / 1000),
    }),
  PolicyServerTimeout: () => new GatewayError(504, 'the policy server did not answer in time', { code: 'timeout' }),
  PolicyServerUnavailable: () => new GatewayError(503, AWAY, { retryAfterSeconds: 1 }),
  PolicyServerError: () => new GatewayError(502, AWAY, { retryAfterSeconds: 1 }),
  RouterFailed: () => new GatewayError(500, 'no policy could be chosen for this conversation', { code: 'not_routed' }),
};

/** Returns the error to send to a client. Unknown errors become a 500 or 502 without details. */
export function toClientError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const told = error instanceof OutsideFailure ? failures[error.type]?.(error) : undefined;
  if (told) return told;
  const isServers = isFailure(error, 'WrongBaseModel', 'PolicyServerWrong', 'AdapterRefused', 'PolicyAnswerInvalid');
  return new GatewayError(isServers ? 502 : 500, `the gateway can't answer; its log says why`, { code: 'internal' });
}

/** The server's own words about a request, without where it is. */
function serverMessage({ cause, message }: OutsideFailure): string {
  const words = cause instanceof ApiError ? cause.message : message;
  return words.replace(/^\d{3} /, '');
}

const fieldOf = ({ cause }: OutsideFailure): string | null =>
  (cause instanceof ApiError && refusedField(cause.body)) || null;

const types: Partial<Record<number, string>> = { 401: 'authentication_error', 429: 'rate_limit_error' };

export function answerError(c: Context, { status, message, more }: GatewayError): Response {
  const { retryAfterSeconds, param = null, code = null } = more;
  if (retryAfterSeconds !== undefined) c.header('retry-after', String(retryAfterSeconds));
  const type = types[status] ?? (status < 500 ? 'invalid_request_error' : 'server_error');
  return c.json({ error: { message, type, param, code } }, status);
}

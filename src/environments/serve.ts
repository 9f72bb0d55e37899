/** Serves any Environment on a pair of streams (docs/environments.md): every request gets one response, errors too. */
import { randomBytes } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import type { z } from 'zod';
import type { Environment, Episode } from '../domain/environment';
import { reasonOf } from '../domain/failures';
import type { AssistantMessage } from '../domain/messages';
import { MAX_LINE, readLines } from './child-process';
import { firstIssue } from '../domain/issues';
import { errorCodes, methods, requestSchema, type Method, type Params, type Result } from './protocol';

type Handlers = { [M in Method]: (params: Params<M>) => Promise<Result<M>> };

class RequestError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

/** Serves until `input` ends; then closes all episodes and the environment. */
export async function serveEnvironment(o: {
  environment: Environment;
  input?: Readable;
  output?: Writable;
}): Promise<void> {
  const { environment, input = process.stdin, output = process.stdout } = o;
  const episodes = new Map<string, Episode>();
  const handlers = createHandlers(environment, episodes);
  const open = new Set<Promise<void>>();

  const write = (response: object) => void output.write(`${JSON.stringify(response)}\n`);

  readLines(input, {
    onLine(line) {
      const answered = answer(line, handlers).then(write);
      open.add(answered);
      void answered.finally(() => open.delete(answered));
    },
    onTooLong: () => write(failed(null, errorCodes.request, `a line is longer than ${MAX_LINE} characters`)),
  });
  await new Promise((resolve) => input.once('end', resolve).once('close', resolve));
  await Promise.all(open);
  await Promise.allSettled([...episodes.values()].map((episode) => episode.close()));
  await environment.close();
}

function createHandlers(environment: Environment, episodes: Map<string, Episode>): Handlers {
  // Ids begin with the run's own: a client with an episode of an earlier run must not reach another one's.
  const run = randomBytes(4).toString('hex');
  let count = 0;
  const known = (id: string): Episode => {
    const episode = episodes.get(id);
    if (!episode) throw new RequestError(errorCodes.params, `params.episode: no open episode ${id}`);
    return episode;
  };
  return {
    describe: () => environment.describe(),
    tasks: async ({ split }) => ({ tasks: await environment.tasks(split) }),
    reset: async ({ task }) => {
      const episode = await environment.reset(task);
      const id = `${run}-${++count}`;
      episodes.set(id, episode);
      return { episode: id, ...episode.start };
    },
    step: async ({ episode, message }) => {
      // An Environment plays its user itself.
      if (message.role !== 'assistant')
        throw new RequestError(errorCodes.params, 'params.message: role must be assistant');
      return known(episode).step(message as AssistantMessage);
    },
    evaluate: ({ episode, reason }) => known(episode).evaluate(reason),
    close: async ({ episode }) => {
      await known(episode).close();
      episodes.delete(episode);
      return {};
    },
  };
}

async function answer(line: string, handlers: Handlers): Promise<object> {
  let id: number | string | null = null;
  try {
    const request = read(requestSchema, JSON.parse(line), errorCodes.request);
    id = request.id;
    if (!(request.method in methods)) {
      const problem = `no method ${request.method}; there are ${Object.keys(methods).join(', ')}`;
      throw new RequestError(errorCodes.method, problem);
    }
    const method = request.method as Method;
    const params = read<z.ZodType>(methods[method].params, request.params ?? {}, errorCodes.params);
    return { jsonrpc: '2.0', id, result: await (handlers[method] as (params: unknown) => Promise<unknown>)(params) };
  } catch (error) {
    const unknown = id === null ? errorCodes.request : errorCodes.environment;
    return failed(id, error instanceof RequestError ? error.code : unknown, reasonOf(error));
  }
}

function read<Schema extends z.ZodType>(schema: Schema, value: unknown, code: number): z.output<Schema> {
  const { data, error } = schema.safeParse(value);
  if (error) throw new RequestError(code, firstIssue(error, value));
  return data;
}

const failed = (id: number | string | null, code: number, message: string) => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
});

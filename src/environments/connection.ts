/**
 * One run of an environment's process and the requests to it. Every request ends. A wrong answer fails its request; a
 * process that ends, answers nonsense or times out fails all open requests.
 */
import { hostname } from 'node:os';
import type { z } from 'zod';
import { firstIssue } from '../domain/issues';
import { LINE, measureJson } from '../domain/json-size';
import { type Child, MAX_LINE, readLines, startChild } from './child-process';
import {
  badEnvironment,
  EnvironmentError,
  quoted,
  readAnswer,
  errorCodes,
  type Method,
  methods,
  type Params,
  requestLine,
  responseSchema,
  type Result,
} from './protocol';

export interface ProcessCommand {
  command: string[];
  cwd?: string;
  /** Variables that it is given beside the bare environment. */
  passEnv?: readonly string[] | undefined;
  /** Milliseconds without any answer while requests are open, after which the process counts as hung. */
  silenceMs?: number;
}

export interface Connection {
  readonly name: string;
  /** Its open episodes by the ids that it gave them; `shared`: it has begun another one under the same id. */
  readonly episodes: Map<string, { shared: boolean }>;
  request<M extends Method>(method: M, params: Params<M>): Promise<Result<M>>;
  /** Set once the process is gone or about to be. */
  readonly failure: EnvironmentError | undefined;
  /** Asks the process to end by closing its stdin, and kills it if it does not. */
  close(): Promise<void>;
}

/** A bridge that loads a benchmark's data answers within seconds; minutes of silence are a hang. */
export const SILENCE_SECONDS = 120;
const ERROR_LENGTH = 500;

interface Waiting {
  method: Method;
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

export function connect({ command, cwd, passEnv, silenceMs = SILENCE_SECONDS * 1000 }: ProcessCommand): Connection {
  const name = quoted(command.join(' '), 200);
  const environment = `environment process "${name}"`;
  const waiting = new Map<number, Waiting>();
  let failure: EnvironmentError | undefined;
  let nextId = 1;
  let watchdog: NodeJS.Timeout | undefined;

  function fail(problem: string, fix: string, type: 'EnvironmentDied' | 'EnvironmentMissing' = 'EnvironmentDied') {
    if (failure) return;
    const stderr = child.stderr();
    const lastWords = stderr && `; its last words on stderr:\n${stderr}`;
    failure = new EnvironmentError(type, { environment, problem, fix: fix + lastWords });
    clearTimeout(watchdog);
    child.kill();
    for (const { reject } of waiting.values()) reject(failure);
    waiting.clear();
  }

  /** Restarts the timeout; without an open request there is none. */
  function watch(): void {
    clearTimeout(watchdog);
    const [longest] = waiting.values();
    if (!longest) return;
    const problem = `has not answered ${longest.method} for ${silenceMs / 1000} s and was killed`;
    const fix = 'find out what it waits for, make it faster, or set target.silenceSeconds higher';
    watchdog = setTimeout(() => fail(problem, fix), silenceMs);
  }

  function taken(id = 0): Waiting | undefined {
    const request = waiting.get(id);
    if (waiting.delete(id)) watch();
    return request;
  }

  function receive({ id, response, problem, fix, isFatal = false }: Answer): void {
    if (failure) return;
    const request = taken(id);
    if (request && response) return settle(request, response);
    // An answer to no request is the fault of the open request, if there is only one.
    const blamed = request ?? (waiting.size === 1 ? taken([...waiting.keys()][0]) : undefined);
    blamed?.reject(badEnvironment(name, blamed.method, problem, fix));
    if (!request || isFatal) fail(problem, fix);
  }

  function settle({ method, resolve, reject }: Waiting, response: Response): void {
    try {
      if ('error' in response) throw answeredError(name, method, response.error);
      resolve(readAnswer(name, method, { schema: methods[method].result, answer: response.result }));
    } catch (error) {
      reject(error as Error);
    }
  }

  const child: Child = startChild({
    command,
    cwd,
    passEnv,
    readOutput: (stdout) =>
      readLines(stdout, {
        onLine: (line) => receive(answerIn(line)),
        onTooLong: (beginning) => receive(tooLong(beginning)),
      }),
    onEnd: (how) => fail(`ended with ${how}`, 'run the command by hand to see why'),
    onStartFailure: (problem) => {
      const fix = 'check the command and its folder';
      fail(`can't be started on ${hostname()}: ${problem}`, fix, 'EnvironmentMissing');
    },
  });

  return {
    name,
    episodes: new Map(),
    request: (method, params) =>
      new Promise((resolve, reject) => {
        if (failure) return reject(failure);
        const id = nextId++;
        waiting.set(id, { method, resolve: resolve as (result: unknown) => void, reject });
        if (waiting.size === 1) watch();
        child.send(requestLine(id, method, params));
      }),
    get failure() {
      return failure;
    },
    close: () => child.close(),
  };
}

type Response = z.infer<typeof responseSchema>;

function answeredError(environment: string, method: Method, { code, message }: { code: number; message: string }) {
  const problem = quoted(message, ERROR_LENGTH) || 'an error without a message';
  const fix = 'answer instead of failing; an error is for what the environment itself can not do';
  const type = code === errorCodes.environment ? 'EnvironmentFailed' : 'BadEnvironment';
  return new EnvironmentError(type, { environment, method, problem, fix });
}

/** A line; `problem` and `fix` are reported if it answers no open request. */
interface Answer {
  id: number | undefined;
  response?: Response;
  problem: string;
  fix: string;
  /** Later lines can't be read either. */
  isFatal?: boolean;
}

const RESPONSE =
  'answer {"jsonrpc": "2.0", "id": ..., "result": {...}}, or "error": {"code": -32000, "message": "..."} in place of "result"';
const STDOUT = 'stdout is for the protocol, logs go to stderr';

function answerIn(line: string): Answer {
  const id = idIn(line);
  const { exceeded } = measureJson(line, LINE);
  if (exceeded)
    return { id, problem: `the answer has over ${LINE[exceeded]} JSON ${exceeded}`, fix: 'send plain records' };
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    const fix = /\b(NaN|Infinity)\b/.test(line) ? 'NaN and Infinity are no JSON: send finite numbers' : STDOUT;
    return { id, problem: `wrote a line that is not JSON: ${quoted(line, 200)}`, fix };
  }
  const { data: response, error: wrong } = responseSchema.safeParse(value);
  if (!response) {
    const isLog = typeof value !== 'object' || value === null || !('id' in value);
    const why = isLog ? '' : ` (${firstIssue(wrong, value)})`;
    return { id, problem: `wrote no JSON-RPC response${why}: ${quoted(line, 200)}`, fix: isLog ? STDOUT : RESPONSE };
  }
  const error = 'error' in response ? ` (${quoted(response.error.message)})` : '';
  const problem = `answered the unknown request ${quoted(String(response.id))}${error}`;
  return { id: Number(response.id), response, problem, fix: 'answer each request once' };
}

const tooLong = (beginning: string): Answer => ({
  id: idIn(beginning),
  problem: `wrote a line of more than ${MAX_LINE / 1024 ** 2} Mi characters: ${quoted(beginning, 200)}`,
  fix: 'send less, and end every answer with a line break',
  isFatal: true,
});

/** Returns the id of the request that a line answers; undefined if it is no answer. */
function idIn(line: string): number | undefined {
  if (!line.startsWith('{')) return undefined;
  const ends = `${line.slice(0, 200)} ${line.slice(-200)}`;
  const id = ends.includes('"jsonrpc"') ? /"id"\s*:\s*(\d+)/.exec(ends)?.[1] : undefined;
  return id === undefined ? undefined : Number(id);
}

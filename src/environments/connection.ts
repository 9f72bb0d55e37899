/**
 * One run of an environment's process and the requests to it.
 * Invariants: every request ends, with an answer or with an EnvironmentError. If the process ends, answers nonsense or stays silent for too
 * long, it is killed and all open requests fail; what is wrong with one answer fails the request that it was for, and the others may be tried again.
 */
import type { z } from 'zod';
import { type FailureType, OutsideFailure } from '../domain/failures';
import { isDeep } from '../sandbox/limits';
import { type Child, MAX_LINE, startChild, startProblem } from './child-process';
import {
  errorCodes,
  firstIssue,
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
  /** Milliseconds without any answer while requests are open, after which the process counts as hung. */
  silenceMs?: number;
}

export interface Connection {
  /** What errors call it. */
  readonly name: string;
  request<M extends Method>(method: M, params: Params<M>): Promise<Result<M>>;
  /** Set once the process is gone or about to be. */
  readonly failure: EnvironmentError | undefined;
  /** Asks the process to end by closing its stdin, and kills it if it does not. */
  close(): Promise<void>;
}

/** A bridge that loads a benchmark's data answers within seconds; minutes of silence are a hang. */
export const SILENCE_SECONDS = 120;
/** Of an error that the environment answers with. */
const ERROR_LENGTH = 500;

interface Waiting {
  method: Method;
  resolve: (result: unknown) => void;
  reject: (error: Error) => void;
}

export function connect({ command, cwd, silenceMs = SILENCE_SECONDS * 1000 }: ProcessCommand): Connection {
  const name = quoted(command.join(' '), 200);
  const environment = `environment process "${name}"`;
  const waiting = new Map<number, Waiting>();
  let child: Child | undefined;
  let failure: EnvironmentError | undefined;
  let nextId = 1;
  let watchdog: NodeJS.Timeout | undefined;

  function fail(type: 'EnvironmentDied' | 'BadEnvironment', parts: Omit<EnvironmentError['parts'], 'environment'>) {
    if (failure) return;
    const stderr = child?.stderr() ?? '';
    failure = new EnvironmentError(type, { environment, ...parts, ...(stderr && { stderr }) });
    clearTimeout(watchdog);
    child?.kill();
    for (const { reject } of waiting.values()) reject(failure);
    waiting.clear();
  }

  /** Starts the silence anew; with nothing to wait for there is no silence. */
  function watch(): void {
    clearTimeout(watchdog);
    if (waiting.size === 0) return;
    const [{ method }] = [...waiting.values()] as [Waiting];
    const problem = `has not answered ${method} for ${silenceMs / 1000} s and was killed`;
    const fix = 'find out what it waits for, make it faster, or set silenceSeconds higher';
    watchdog = setTimeout(() => fail('EnvironmentDied', { problem, fix, silent: true }), silenceMs);
  }

  /** Takes a request off the open ones. */
  function taken(id: number | undefined): Waiting | undefined {
    const request = id === undefined ? undefined : waiting.get(id);
    if (request) {
      waiting.delete(id!);
      watch();
    }
    return request;
  }

  const bad = (method: Method, problem: string, fix: string) =>
    new EnvironmentError('BadEnvironment', { environment: name, method, problem, fix });

  /** A line that answers no request in particular: the one that is open is to blame; of several, none is. */
  function refuse(problem: string, fix: string): void {
    const [only, ...others] = waiting.keys();
    if (others.length === 0) {
      const request = taken(only);
      request?.reject(bad(request.method, problem, fix));
    }
    fail('EnvironmentDied', { problem, fix });
  }

  function receive(line: string): void {
    if (failure) return;
    const answer = readAnswer(line);
    const request = taken(answer.id);
    if ('problem' in answer) {
      if (request) request.reject(bad(request.method, answer.problem, answer.fix));
      else refuse(answer.problem, answer.fix);
      return;
    }
    const { response } = answer;
    if (!request) {
      const said = 'error' in response ? ` (${quoted(response.error.message)})` : '';
      return refuse(`answered the unknown request ${quoted(String(response.id))}${said}`, 'answer each request once');
    }
    if ('error' in response) return request.reject(rejection(request.method, response.error));
    const result = methods[request.method].result.safeParse(response.result);
    if (result.success) return request.resolve(result.data);
    const fix = `return what docs/environments.md says of ${request.method}`;
    request.reject(bad(request.method, quoted(firstIssue(result.error)), fix));
  }

  function tooLong(beginning: string): void {
    if (failure) return;
    const problem = `wrote a line of more than ${MAX_LINE / 1024 ** 2} Mi characters: ${quoted(beginning, 200)}`;
    const fix = 'send less, and end every answer with a line break';
    const request = taken(idIn(beginning));
    if (!request) return refuse(problem, fix);
    request.reject(bad(request.method, problem, fix));
    fail('EnvironmentDied', { problem, fix });
  }

  const rejection = (method: Method, { code, message }: { code: number; message: string }) =>
    new EnvironmentError(code === errorCodes.environment ? 'EnvironmentFailed' : 'BadEnvironment', {
      environment: name,
      method,
      problem: quoted(message, ERROR_LENGTH) || 'an error without a message',
      fix: 'answer instead of failing; an error is for what the environment itself can not do',
    });

  const onStartFailure = (problem: string) =>
    fail('BadEnvironment', { problem: `can't be started: ${problem}`, fix: 'check the command and its folder' });
  const onEnd = (how: string) =>
    fail('EnvironmentDied', { problem: `ended with ${how}`, fix: 'run the command by hand to see why' });
  try {
    child = startChild({ command, cwd, onLine: receive, onTooLong: tooLong, onEnd, onStartFailure });
  } catch (error) {
    onStartFailure(startProblem({ error, cwd }));
  }

  return {
    name,
    request: (method, params) =>
      new Promise((resolve, reject) => {
        if (failure) return reject(failure);
        const id = nextId++;
        waiting.set(id, { method, resolve: resolve as (result: unknown) => void, reject });
        if (waiting.size === 1) watch();
        child?.send(requestLine(id, method, params));
      }),
    get failure() {
      return failure;
    },
    close: async () => child?.close(),
  };
}

type Answer =
  { id: number; response: z.infer<typeof responseSchema> } | { id: number | undefined; problem: string; fix: string };

/** No schema or argument of a tool is nested so deep; what is deeper overflows the stack of whoever walks through it. */
const MAX_DEPTH = 100;
const STDOUT = 'stdout is for the protocol, logs go to stderr';

function readAnswer(line: string): Answer {
  const wrong = (problem: string, fix = STDOUT): Answer => ({ id: idIn(line), problem, fix });
  if (isDeep(line, MAX_DEPTH)) return wrong(`the answer is nested deeper than ${MAX_DEPTH}`, 'send plain records');
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    const fix = /\b(NaN|Infinity)\b/.test(line) ? 'NaN and Infinity are no JSON: send finite numbers' : STDOUT;
    return wrong(`wrote a line that is not JSON: ${quoted(line, 200)}`, fix);
  }
  const { success, data: response } = responseSchema.safeParse(value);
  return success ? { id: Number(response.id), response } : wrong(`wrote no JSON-RPC response: ${quoted(line, 200)}`);
}

/** The request that a line answers, if it is meant to be an answer at all. */
function idIn(line: string): number | undefined {
  if (!line.startsWith('{')) return undefined;
  const ends = `${line.slice(0, 200)} ${line.slice(-200)}`;
  const id = ends.includes('"jsonrpc"') ? /"id"\s*:\s*(\d+)/.exec(ends)?.[1] : undefined;
  return id === undefined ? undefined : Number(id);
}

interface EnvironmentErrorParts {
  /** The environment, as a user would name it. */
  environment: string;
  method?: string | undefined;
  /** Begins with the field where there is one. */
  problem: string;
  fix: string;
  /** The process's last words. */
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
    const said = stderr ? `; its last words on stderr:\n${stderr}` : '';
    super(type, `${[environment, method, problem].filter(Boolean).join(': ')}; ${fix}${said}`);
  }
}

const QUOTED = 300;

/** Text of an environment's within an error: its beginning, and how long it is. */
export const quoted = (text: string, length = QUOTED): string =>
  text.length <= length ? text : `${text.slice(0, length)}... (${text.length} characters)`;

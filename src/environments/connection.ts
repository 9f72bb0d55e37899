/**
 * One run of an environment's process and the requests to it. Every request ends; what is wrong with one answer fails
 * its request, and a process that ends, answers nonsense or stays silent fails all that are open.
 */
import type { z } from 'zod';
import { type FailureType, OutsideFailure } from '../domain/failures';
import { limited } from '../domain/signs-of-life';
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
  readonly name: string;
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

  function taken(id = 0): Waiting | undefined {
    const request = waiting.get(id);
    if (waiting.delete(id)) watch();
    return request;
  }

  const bad = (method: Method, problem: string, fix: string) =>
    new EnvironmentError('BadEnvironment', { environment: name, method, problem, fix });

  function receive(answer: Answer): void {
    if (failure) return;
    const request = taken(answer.id);
    if ('response' in answer && request) return settle(request, answer.response);
    const { problem, fix, isFatal = false } = 'response' in answer ? unexpected(answer.response) : answer;
    // What answers no request in particular is blamed on the one that is open; of several, none is to blame.
    const blamed = request ?? (waiting.size === 1 ? taken([...waiting.keys()][0]) : undefined);
    blamed?.reject(bad(blamed.method, problem, fix));
    if (!request || isFatal) fail('EnvironmentDied', { problem, fix });
  }

  function settle({ method, resolve, reject }: Waiting, response: Response): void {
    if ('error' in response) {
      const { code, message } = response.error;
      const problem = quoted(message, ERROR_LENGTH) || 'an error without a message';
      const fix = 'answer instead of failing; an error is for what the environment itself can not do';
      const type = code === errorCodes.environment ? 'EnvironmentFailed' : 'BadEnvironment';
      return reject(new EnvironmentError(type, { environment: name, method, problem, fix }));
    }
    const result = methods[method].result.safeParse(response.result);
    if (result.success) return resolve(result.data);
    reject(bad(method, quoted(firstIssue(result.error)), `return what docs/environments.md says of ${method}`));
  }

  const tooLong = (beginning: string): Answer => ({
    id: idIn(beginning),
    problem: `wrote a line of more than ${MAX_LINE / 1024 ** 2} Mi characters: ${quoted(beginning, 200)}`,
    fix: 'send less, and end every answer with a line break',
    isFatal: true,
  });
  const onStartFailure = (problem: string) =>
    fail('BadEnvironment', { problem: `can't be started: ${problem}`, fix: 'check the command and its folder' });
  const onEnd = (how: string) =>
    fail('EnvironmentDied', { problem: `ended with ${how}`, fix: 'run the command by hand to see why' });
  try {
    const onLine = (line: string) => receive(readAnswer(line));
    const onTooLong = (beginning: string) => receive(tooLong(beginning));
    child = startChild({ command, cwd, onLine, onTooLong, onEnd, onStartFailure });
  } catch (error) {
    onStartFailure(startProblem({ error, cwd }));
  }

  return {
    name,
    request: (method, params) =>
      limited(
        new Promise((resolve, reject) => {
          if (failure) return reject(failure);
          const id = nextId++;
          waiting.set(id, { method, resolve: resolve as (result: unknown) => void, reject });
          if (waiting.size === 1) watch();
          child?.send(requestLine(id, method, params));
        }),
      ),
    get failure() {
      return failure;
    },
    close: async () => child?.close(),
  };
}

type Response = z.infer<typeof responseSchema>;

interface WrongAnswer {
  id: number | undefined;
  problem: string;
  fix: string;
  /** Nothing that comes after it can be read. */
  isFatal?: boolean;
}
type Answer = WrongAnswer | { id: number; response: Response };

function unexpected(response: Response): WrongAnswer {
  const said = 'error' in response ? ` (${quoted(response.error.message)})` : '';
  const problem = `answered the unknown request ${quoted(String(response.id))}${said}`;
  return { id: undefined, problem, fix: 'answer each request once' };
}

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
  environment: string;
  method?: string | undefined;
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
    const said = stderr ? `; its last words on stderr:\n${stderr}` : '';
    super(type, `${[environment, method, problem].filter(Boolean).join(': ')}; ${fix}${said}`);
  }
}

const QUOTED = 300;

/** Text of an environment's within an error: its beginning, and how long it is. */
export const quoted = (text: string, length = QUOTED): string =>
  text.length <= length ? text : `${text.slice(0, length)}... (${text.length} characters)`;

/**
 * One run of an environment's process and the requests to it. Invariant: every request ends, with an answer or with an
 * OutsideFailure: if the process ends, answers nonsense, or stays silent for too long, it is killed and all open requests fail.
 */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import type { z } from 'zod';
import type { FailureType } from '../domain/failures';
import { OutsideFailure } from '../domain/failures';
import { readLines } from './lines';
import { errorCodes, firstIssue, methods, responseSchema, type Method, type Params, type Result } from './protocol';

export interface ProcessCommand {
  command: string[];
  cwd?: string;
  /** Milliseconds without any answer while requests are open, after which the process counts as hung. */
  silenceMs?: number;
}

export interface Connection {
  request<M extends Method>(method: M, params: Params<M>): Promise<Result<M>>;
  /** Set once the process is gone or about to be. */
  readonly failure: OutsideFailure | undefined;
  /** Asks the process to end by closing its stdin, and kills it if it does not. */
  close(): Promise<void>;
}

/** A bridge that loads a benchmark's data answers within seconds; minutes of silence are a hang. */
const SILENCE_MS = 120_000;
const CLOSE_MS = 2_000;
const STDERR_LINES = 5;

interface Waiting {
  method: Method;
  resolve: (result: unknown) => void;
  reject: (error: OutsideFailure) => void;
}

export function connect({ command, cwd, silenceMs = SILENCE_MS }: ProcessCommand): Connection {
  const name = command.join(' ');
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: 'pipe', ...(cwd !== undefined && { cwd }) });
  const waiting = new Map<number, Waiting>();
  const stderr: string[] = [];
  const exited = new Promise<void>((resolve) => child.once('close', () => resolve()).once('error', () => resolve()));
  let failure: OutsideFailure | undefined;
  let nextId = 1;
  let watchdog: NodeJS.Timeout | undefined;

  function fail(type: FailureType, problem: string): void {
    if (failure) return;
    const said = stderr.length > 0 ? `; stderr: ${stderr.join(' | ')}` : '';
    failure = new OutsideFailure(type, `environment process "${name}" ${problem}${said}`);
    clearTimeout(watchdog);
    child.kill('SIGKILL');
    for (const { reject } of waiting.values()) reject(failure);
    waiting.clear();
  }

  /** Starts the silence anew; with nothing to wait for there is no silence. */
  function watch(): void {
    clearTimeout(watchdog);
    if (waiting.size === 0) return;
    const [{ method }] = [...waiting.values()] as [Waiting];
    watchdog = setTimeout(
      () => fail('EnvironmentDied', `has not answered ${method} for ${silenceMs / 1000} s`),
      silenceMs,
    );
  }

  function receive(line: string): void {
    const response = parseResponse(line);
    if (typeof response === 'string')
      return fail('BadEnvironment', `${response}; stdout is for the protocol, logs go to stderr`);
    const request = waiting.get(Number(response.id));
    if (!request) return fail('BadEnvironment', `answered the unknown request ${response.id}`);
    waiting.delete(Number(response.id));
    watch();
    if ('error' in response) return request.reject(rejection(request.method, response.error));
    const result = methods[request.method].result.safeParse(response.result);
    if (result.success) request.resolve(result.data);
    else
      request.reject(new OutsideFailure('BadEnvironment', `${name}: ${request.method}: ${firstIssue(result.error)}`));
  }

  const rejection = (method: Method, { code, message }: { code: number; message: string }) =>
    new OutsideFailure(
      code === errorCodes.environment ? 'EnvironmentFailed' : 'BadEnvironment',
      `${name}: ${method}: ${message}`,
    );

  listen(child, { receive, stderr });
  child.stdin.on('error', () => undefined); // a broken pipe: `close` follows and tells why
  child.on('error', (error) =>
    fail('BadEnvironment', `can't be started: ${error.message}; check the command and its folder`),
  );
  child.on('close', (code, signal) => fail('EnvironmentDied', `ended with ${signal ?? `exit code ${code}`}`));

  return {
    request: (method, params) =>
      new Promise((resolve, reject) => {
        if (failure) return reject(failure);
        const id = nextId++;
        waiting.set(id, { method, resolve: resolve as (result: unknown) => void, reject });
        if (waiting.size === 1) watch();
        child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
      }),
    get failure() {
      return failure;
    },
    async close() {
      child.stdin.end();
      const timer = setTimeout(() => child.kill('SIGKILL'), CLOSE_MS);
      await exited;
      clearTimeout(timer);
    },
  };
}

function listen(
  child: ChildProcessWithoutNullStreams,
  { receive, stderr }: { receive: (line: string) => void; stderr: string[] },
): void {
  readLines(child.stdout, receive);
  readLines(child.stderr, (line) => {
    stderr.push(line.trim().slice(0, 300));
    if (stderr.length > STDERR_LINES) stderr.shift();
  });
}

/** The response, or what is wrong with the line. */
function parseResponse(line: string): z.infer<typeof responseSchema> | string {
  try {
    const response = responseSchema.safeParse(JSON.parse(line));
    return response.success ? response.data : `wrote no JSON-RPC response: ${line.slice(0, 200)}`;
  } catch {
    return `wrote a line that is not JSON: ${line.slice(0, 200)}`;
  }
}

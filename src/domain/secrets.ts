/**
 * Keeps keys out of /proc/PID/environ, which shows what a process was started with to all processes of the same user. Keys reach a process of this
 * project by a file, mostly a pipe; what it was started with is erased there (Linux). Invariant: no program of this project is started with a key
 * in its environment.
 */
import type { ChildProcess, StdioPipe } from 'node:child_process';
import { closeSync, openSync, readFileSync, readSync, unlinkSync, writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { parseEnv } from 'node:util';
import { reasonOf } from './failures';

/** Names a file of variables: a JSON object, or lines NAME=value. */
const KEYS_FILE = 'CAMPAIGN_KEYS_FILE';
/** Variables that a process needs before it has read the others, that mark it for its supervisor, or that say where it works. */
const CLEAR =
  /^(PATH|HOME|USER|LOGNAME|SHELL|PWD|TERM|TMPDIR|LANG|LC_.*|TZ|(NODE|LD|DYLD|UV|SSL|OPENSSL|PYTHON|CAMPAIGN)_.*|PYTHONPATH|PYTHONHOME|POLICY_SERVER_URL|TEMPORAL_(ADDRESS|NAMESPACE|CONFIG_FILE))$/;
const KEY = /API_KEY|(^|_)KEYS?$|TOKENS?$|SECRET|PASSWORD|PASSWD|CREDENTIAL/;
const OF_WORKERS = /^(TEMPORAL|AWS)_|^CAMPAIGN_STORE$/;

export const isSecret = (name: string): boolean => KEY.test(name) || OF_WORKERS.test(name);
const isClear = (name: string): boolean => CLEAR.test(name) && !KEY.test(name);

const pick = (env: NodeJS.ProcessEnv, chosen: (name: string) => boolean): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name, value]) => value !== undefined && chosen(name)));

/** Splits variables into those that a process may be started with and those that it has to read from a pipe. */
export const splitVariables = (env: NodeJS.ProcessEnv) => ({
  env: pick(env, isClear),
  keys: pick(env, (name) => !isClear(name)),
});

/** Returns how to start a process with keys: `stdio` follows the three usual streams, and `send` is called once it has started. */
export function keyPipe(keys: NodeJS.ProcessEnv = {}): {
  env: NodeJS.ProcessEnv;
  stdio: StdioPipe[];
  send: (child: ChildProcess) => void;
} {
  if (Object.keys(keys).length === 0) return { env: {}, stdio: [], send: () => undefined };
  return {
    env: { [KEYS_FILE]: '/dev/fd/3' },
    stdio: ['pipe'],
    send: (child) => {
      const pipe = child.stdio[3] as Writable | undefined;
      pipe?.on('error', () => undefined);
      pipe?.end(JSON.stringify(keys));
    },
  };
}

/** Reads the file of keys into process.env, removes it, and erases from /proc/self/environ what this process was started with. */
export function takeKeys(): void {
  const file = process.env[KEYS_FILE];
  delete process.env[KEYS_FILE];
  if (file) Object.assign(process.env, readKeys(file));
  eraseEnvironment();
}

function readKeys(file: string): object {
  const descriptor = /^\/dev\/fd\/(\d+)$/.exec(file)?.[1];
  let text: string;
  try {
    text = readFileSync(descriptor === undefined ? file : Number(descriptor), 'utf8');
  } catch (error) {
    const problem = `${KEYS_FILE} is ${file}, which can't be read (${reasonOf(error)})`;
    throw new Error(`${problem}; name a file of lines NAME=value`, { cause: error });
  }
  if (descriptor === undefined) removeIfPossible(file);
  // No program may inherit it.
  else closeSync(Number(descriptor));
  return text.startsWith('{') ? (JSON.parse(text) as object) : parseEnv(text);
}

function removeIfPossible(file: string): void {
  try {
    unlinkSync(file);
  } catch {
    // It is mounted, or gone.
  }
}

/** The kernel shows the memory in which the process got its variables; only clear ones are left there. */
function eraseEnvironment(): void {
  try {
    // proc(5): fields 50 and 51 are where it begins and ends.
    const fields = readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
    const [start, end] = [Number(fields[47]), Number(fields[48])];
    const memory = openSync('/proc/self/mem', 'r+');
    const bytes = Buffer.alloc(end - start);
    const length = readSync(memory, bytes, 0, bytes.length, start);
    // The C library keeps a variable where it was until it is set.
    for (const [name, value] of Object.entries(process.env)) process.env[name] = value;
    for (let from = 0; from < length;) {
      const to = bytes.indexOf(0, from) < 0 ? length : bytes.indexOf(0, from);
      const name = bytes.toString('latin1', from, to).split('=')[0]!;
      if (!isClear(name) || name === KEYS_FILE) bytes.fill(0, from, to);
      from = to + 1;
    }
    writeSync(memory, bytes, 0, length, start);
    closeSync(memory);
  } catch {
    // There is no /proc, or it can't be written.
  }
}

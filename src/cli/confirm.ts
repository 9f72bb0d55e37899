/** A yes asked for on the terminal, on stderr: what is printed is the result's. */
import { createInterface } from 'node:readline/promises';
import { plain } from '../terminal';
import { UserError } from './errors';

/** The end of the input and Ctrl-C are no. @throws UserError where there is no terminal to ask on. */
export async function confirmed(what: string, signal?: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UserError(`no terminal to confirm on; pass --yes to ${what}`);
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    lines.once('SIGINT', () => lines.close());
    const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const answer = await Promise.race([lines.question(plain(`${what}? [y/N] `), signal ? { signal } : {}), closed]);
    return /^\s*y(es)?\s*$/i.test(answer);
  } finally {
    lines.close();
  }
}

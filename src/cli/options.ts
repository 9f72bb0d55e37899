/** Options that several commands have, and the question before what can't be undone. */
import { createInterface } from 'node:readline/promises';
import { plainText } from '../domain/plain-text';
import { InputError, UserError } from './errors';
import { type Home, homeAt } from './project';

export interface CommonOptions {
  home: string;
  /** An existing cluster, instead of the home's own server. */
  temporalAddress?: string;
  json?: boolean;
  yes?: boolean;
  debug?: boolean;
}

export const homeOf = (options: CommonOptions): Home => homeAt(options.home);

export const namespace = (): string => process.env['TEMPORAL_NAMESPACE'] ?? 'default';

/** The end of the input and Ctrl-C are no. @throws UserError where there is no terminal to ask on. */
export async function confirmed(what: string, signal?: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new InputError({
      ...{ code: 'missing_field', field: '--yes', reason: 'is missing, and there is no terminal to confirm on' },
      fix: `pass --yes to ${what}`,
    });
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    lines.once('SIGINT', () => lines.close());
    const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const answer = await Promise.race([lines.question(plainText(`${what}? [y/N] `), signal ? { signal } : {}), closed]);
    return /^\s*y(es)?\s*$/i.test(answer);
  } finally {
    lines.close();
  }
}

/** Asks for confirmation. @throws UserError if the answer is no, or there is no terminal. */
export async function requireYes(
  what: string,
  { yes = false, otherwise }: { yes?: boolean | undefined; otherwise: string },
) {
  if (!yes && !(await confirmed(what))) throw new UserError('aborted', 'confirmation', otherwise);
}

/** Asking before money is spent. Invariant: without a terminal to ask on, or an answer, it is no. */
import { createInterface } from 'node:readline/promises';

export async function confirmed(question: string, signal: AbortSignal): Promise<boolean> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // The end of the input is no answer, and neither is Ctrl-C.
    lines.once('SIGINT', () => lines.close());
    const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const answer = await Promise.race([lines.question(`${question} [y/N] `, { signal }), closed]);
    return /^\s*y(es)?\s*$/i.test(answer);
  } finally {
    lines.close();
  }
}

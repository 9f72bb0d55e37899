/** Runs commands in this process; what they print comes back as text, and their exit code. */
import { createProgram, main } from '../../src/cli/main';

/** Node's warning when it collects files that an earlier test of this process has left open. */
const LEFT_OPEN =
  /^\(node:\d+\) Warning: Closing file descriptor \d+ on garbage collection\n|^\(Use `node --trace-warnings.*\n/gm;

/** Returns the result of `work` and its output by stream. `columns`: the width of a terminal; undefined if there is none. */
export async function whilePrinting<Result>(work: () => Promise<Result>, columns?: number) {
  const output = { stdout: '', stderr: '' };
  const streams = [process.stdout, process.stderr];
  const before = streams.map((stream) => stream.columns);
  for (const stream of streams) Object.assign(stream, { columns });
  const spies = [
    jest.spyOn(process.stdout, 'write').mockImplementation((text) => Boolean((output.stdout += String(text)))),
    jest
      .spyOn(process.stderr, 'write')
      .mockImplementation((text) => Boolean((output.stderr += String(text).replace(LEFT_OPEN, '')))),
    jest.spyOn(console, 'log').mockImplementation((text) => void (output.stdout += `${text}\n`)),
  ];
  // Both are the process's, and so of all tests that run in it.
  const { exitCode } = process;
  process.exitCode = undefined;
  try {
    return { result: await work(), ...output, code: Number(process.exitCode ?? 0) };
  } finally {
    process.exitCode = exitCode;
    for (const spy of spies) spy.mockRestore();
    for (const [n, stream] of streams.entries()) Object.assign(stream, { columns: before[n] });
  }
}

/** A command line as bin/campaign runs it. */
export async function campaign(
  args: string[],
  { env = {}, columns }: { env?: NodeJS.ProcessEnv; columns?: number } = {},
) {
  const { argv, env: environment } = process;
  process.argv = [...argv.slice(0, 2), ...args];
  process.env = { ...environment, ...env };
  if (!env['CAMPAIGN_HOME']) delete process.env['CAMPAIGN_HOME'];
  try {
    const { result: status, stdout, stderr } = await whilePrinting(() => main(args), columns);
    return { status, stdout, stderr };
  } finally {
    Object.assign(process, { argv, env: environment });
  }
}

/** A command; what it throws is thrown on. */
export async function runCommand(...argv: string[]): Promise<{ text: string; code: number }> {
  const { stdout, code } = await whilePrinting(() => createProgram().parseAsync(argv, { from: 'user' }));
  return { text: stdout.trimEnd(), code };
}

/** Over a home. */
export const campaignCommand = (home: string, ...argv: string[]): Promise<{ text: string; code: number }> =>
  runCommand('--home', home, ...argv);

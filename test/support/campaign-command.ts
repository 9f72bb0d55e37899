/** Runs commands in this process; what they print comes back as text, and their exit code. */
import { Command } from 'commander';
import { addCommands } from '../../src/cli/commands';
import { setColumns } from './columns';

/** Over a home. */
export const campaignCommand = (home: string, ...argv: string[]): Promise<{ text: string; code: number }> =>
  runCommand('--home', home, ...argv);

export async function runCommand(...argv: string[]): Promise<{ text: string; code: number }> {
  const lines: string[] = [];
  const restoreColumns = setColumns(undefined);
  const log = jest.spyOn(console, 'log').mockImplementation((text: string) => void lines.push(text));
  const write = jest
    .spyOn(process.stdout, 'write')
    .mockImplementation((chunk) => lines.push(String(chunk).trimEnd()) > 0);
  const program = new Command('campaign')
    .option('--home <folder>')
    .option('--temporal-address <address>')
    .exitOverride();
  addCommands(program);
  // It is the process's, and so of all tests that run in it.
  const before = process.exitCode;
  process.exitCode = undefined;
  try {
    await program.parseAsync(argv, { from: 'user' });
    return { text: lines.join('\n'), code: Number(process.exitCode ?? 0) };
  } finally {
    log.mockRestore();
    write.mockRestore();
    restoreColumns();
    process.exitCode = before;
  }
}

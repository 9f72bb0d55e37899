/** Runs commands in this process; what they print comes back as text, and their exit code. */
import { Command } from 'commander';
import { approvalCommands } from '../../src/cli/commands/approval';
import { controlCommands } from '../../src/cli/commands/control';
import { reportCommand } from '../../src/cli/commands/report';
import { statusCommands } from '../../src/cli/commands/status';
import { setColumns } from './columns';

const overHome = [statusCommands, controlCommands, approvalCommands, reportCommand];

/** `status`, `watch`, `pause` and its like, `report` and the commands of approval, over a home. */
export const campaignCommand = (home: string, ...argv: string[]): Promise<{ text: string; code: number }> =>
  runCommand(overHome, '--home', home, ...argv);

export async function runCommand(
  commands: readonly ((program: Command) => void)[],
  ...argv: string[]
): Promise<{ text: string; code: number }> {
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
  for (const add of commands) add(program);
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

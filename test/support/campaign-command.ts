/** Runs `watch`, `status`, `report` and the commands of approval in this process over a home; what they print comes back as text, and their exit code. */
import { Command } from 'commander';
import { approvalCommands } from '../../src/cli/commands/approval';
import { reportCommand } from '../../src/cli/commands/report';
import { watchCommands } from '../../src/cli/commands/watch';
import { setColumns } from './columns';

export async function campaignCommand(home: string, ...argv: string[]): Promise<{ text: string; code: number }> {
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
  watchCommands(program);
  approvalCommands(program);
  reportCommand(program);
  try {
    await program.parseAsync(['--home', home, ...argv], { from: 'user' });
    return { text: lines.join('\n'), code: Number(process.exitCode ?? 0) };
  } finally {
    log.mockRestore();
    write.mockRestore();
    restoreColumns();
  }
}

/** The command line as a whole: its size, and what its output looks like off a terminal. */
import type { Command } from 'commander';
import { createProgram } from '../../../src/cli/main';
import { campaign } from '../../support/campaign-command';

const leaves = (command: Command): Command[] =>
  command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
/** `_hidden`: commander tells only help which commands are hidden. */
const isShown = (command: Command): boolean => !(command as unknown as { _hidden: boolean })._hidden;

test('there are at most 22 commands and 50 options', () => {
  const program = createProgram();
  const commands = leaves(program).filter(isShown);
  const options = [program, ...commands].flatMap((one) => one.options.filter(({ hidden }) => !hidden));
  const own = options.filter(({ long }) => long !== '--version');
  expect(commands.length).toBeLessThanOrEqual(22);
  expect(own.length).toBeLessThanOrEqual(50);
});

test.each([['status'], ['serve'], ['run'], ['run', 'x.yaml', '--until', 'nowhere'], ['nothing']])(
  'bad usage ends with exit code 2 and one line: %j',
  async (...words) => {
    const { status, stdout, stderr } = await campaign(words);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr.trim().split('\n')).toHaveLength(1);
  },
);

// The prose of the commands: other tests assert codes and fields.
test.each(leaves(createProgram()).filter(isShown))('help of a command: %#', (command) => {
  command.configureHelp({ helpWidth: 80 });
  expect(command.helpInformation()).toMatchSnapshot(command.name());
});

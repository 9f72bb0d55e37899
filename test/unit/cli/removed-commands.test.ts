import { removed } from '../../../src/cli/removed-commands';
import { campaign } from '../../support/campaign-command';

it.each(removed)('refuses $command $option with its replacement', async ({ command, option, version, why }) => {
  const words = option ? [command, option] : [command];
  const { status, stdout, stderr } = await campaign([...words, 'x']);
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  expect(stderr).toBe(`campaign: ${words.join(' ')}: removed in ${version}: ${why} [removed_command]\n`);
});

import { removed } from '../../../src/cli/removed-commands';
import { campaign } from '../../support/campaign-command';

it.each(Object.entries(removed))('refuses %s with its replacement', async (command, why) => {
  expect(await campaign([command, 'x', '--option'])).toEqual({
    ...{ status: 2, stdout: '', stderr: `campaign: ${command}: removed in 0.3: ${why} [removed_command]\n` },
  });
});

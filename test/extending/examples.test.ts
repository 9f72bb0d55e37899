/** The shipped example of a module passes the check that users run. */
import { resolve } from 'node:path';
import { checkModule } from '../../src/cli/check/module';

test('refuse_forbidden_actions passes `campaign check`', async () => {
  const file = resolve(__dirname, '../../examples/modules/refuse_forbidden_actions.js');
  expect(await checkModule({ file, say: () => undefined })).toEqual([]);
});

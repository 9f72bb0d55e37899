/** The shipped base and a target in plain English, for real: stopped before the base rollouts, with the reasons. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { homeAt } from '../../src/cli/project';
import { CampaignRun, command, repository, writeCampaign } from '../support/campaign-run';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(5 * 60_000);
const folder = temporaryFolder();
const home = homeAt(join(folder, 'home'));
const file = join(folder, 'library.yaml');
mkdirSync(home.root);
writeCampaign({
  file,
  name: 'library',
  target: { kind: 'process', command: [process.execPath, join(repository, 'test', 'support', 'library.mjs')] },
  model: join(repository, 'models', 'base'),
  lines: `rollouts: { tasks: 20 }
validation: { targetTasks: 4 }
router: { tasks: 8, folds: 2 }
evaluation: { tasks: 6 }
`,
});

test('the campaign stops before its base rollouts, and says why and what helps', async () => {
  const run = new CampaignRun(home, file);
  expect(await run.exit).toBe(1);
  expect(run.output).toMatch(
    /campaign library ended as failed: the base model can't work on this target: \d\d% of the target's text/,
  );
  expect(run.output).toMatch(
    /unknown to the base's tokenizer, most often .*"member".*take a base whose vocabulary has/,
  );
  expect(run.output).toMatch(/16 rollouts of as many different tasks all say the same: .*chat template/);
  expect(run.output).toMatch(
    /none of 16 rollouts calls a tool that the target offers, such as lend_book: take a base that calls/,
  );
  expect(run.output).toContain('With --force the campaign goes on anyhow');
  expect(run.output).toMatch(/warning: synthesizer: capabilities will end not_synthesized/);
  expect(await command(home, 'status', 'library')).toContain("can't work on this target");
});

test('doctor says it too', async () => {
  const doctor = command(home, 'doctor', file).catch(({ stdout }: { stdout: string }) => stdout);
  expect(await doctor).toMatch(
    /^missing +base tokenizer +\d\d% of the target's text .*; take a base whose vocabulary/m,
  );
});

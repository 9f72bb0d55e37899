/** A whole campaign at learning rate 0 (`make test-null`): no arm is reported as better than base, no adapter as a help. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { reportOf, repository } from '../support/campaign-run';
import { newFolder } from '../support/temporary-folder';

it(
  'learning rate 0 reports no gain',
  async () => {
    const home = newFolder();
    const ports = ['--ui-port', '0'];
    const command = ['--home', home, 'run', join(repository, 'campaigns/null.yaml'), '--json', ...ports];
    const child = spawn(join(repository, 'bin/campaign'), command, { stdio: ['ignore', 'inherit', 'inherit'] });
    expect(await new Promise((done) => child.once('exit', done))).toBe(0);

    const report = reportOf({ root: home }, 'null');
    // The test means something only if adapters were made and evaluated.
    const adapters = (report.capabilities ?? []).filter(({ status }) => status === 'completed');
    expect(adapters.length).toBeGreaterThan(0);
    expect(adapters.every(({ training }) => training?.unchanged)).toBe(true);
    const compared = (report.arms ?? []).filter(({ name }) => name !== 'base' && name !== 'oracle');
    expect(compared.map(({ name }) => name)).toEqual(expect.arrayContaining(['trace', 'grpo_target']));
    for (const { name, differenceToBase } of compared)
      expect({ name, low: (differenceToBase?.interval?.low ?? 0) <= 0 }).toEqual({ name, low: true });
    expect(adapters.filter(({ statement }) => statement?.verdict === 'helps').map(({ name }) => name)).toEqual([]);
  },
  20 * 60_000,
);

/**
 * `make test-plantings`: for the shipped base and for two bases made with other lacks, the analyst selects the capabilities of exactly the
 * planted skills. Making the two bases takes about half an hour on two cores the first time; they are kept in .cache/plantings.
 */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { reportOf, repository, writeCampaign } from '../support/campaign-run';
import { newFolder } from '../support/temporary-folder';

const capabilityOf: Record<string, string> = {
  complete_all: 'complete_all_requested_actions',
  refuse: 'refuse_forbidden_actions',
  compute: 'compute_action_values',
  tell: 'tell_requested_information',
  ask: 'ask_for_missing_identifiers',
};
const plantings = [
  { model: join(repository, 'models', 'base'), lacks: ['complete_all', 'refuse', 'tell'] },
  { model: join(repository, '.cache', 'plantings', 'compute-refuse-tell'), lacks: ['compute', 'refuse', 'tell'] },
  { model: join(repository, '.cache', 'plantings', 'ask-refuse-tell'), lacks: ['ask', 'refuse', 'tell'] },
];

test.each(plantings)(
  'selects what $model lacks',
  async ({ model, lacks }) => {
    if (!existsSync(join(model, 'config.json'))) {
      const flags = lacks.flatMap((skill) => ['--lack', `${skill}=0.75`]);
      const command = ['-m', 'examples.shop.base_model', '--out', model, ...flags];
      execFileSync(join(repository, '.venv', 'bin', 'python'), command, {
        cwd: repository,
        stdio: ['ignore', 'ignore', 'inherit'],
      });
    }
    const home = newFolder();
    const file = join(home, 'planting.yaml');
    writeCampaign({ file, name: 'planting', model, lines: '' });
    const ports = ['--ui-port', '0'];
    const run = ['--home', join(home, 'home'), 'run', file, '--until', 'selection', '--json', ...ports];
    execFileSync(join(repository, 'bin', 'campaign'), run, { stdio: ['ignore', 'ignore', 'inherit'] });

    const report = reportOf({ root: join(home, 'home') }, 'planting');
    const selected = report.selection?.candidates.filter((c) => c.selected).map((c) => c.name);
    const candidates = report.selection?.candidates.map(
      (c) => `${c.name}: votes ${c.votes}, Cov ${c.coverage?.value}, Delta ${c.delta?.value}`,
    );
    console.log(`${model} lacks ${lacks.join(', ')}\n${candidates?.join('\n')}`);
    expect(selected?.sort()).toEqual(lacks.map((skill) => capabilityOf[skill]).sort());
  },
  60 * 60_000,
);

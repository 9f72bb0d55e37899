/** `campaign doctor` and `campaign schema`. */
import type { Command } from 'commander';
import { allOptions, examples, homeOf, portOptions } from '../options';
import type { PortOptions } from '../ports';

export function doctorCommands(program: Command): void {
  portOptions(program.command('doctor [file]'))
    .description('check this machine, or everything that a campaign file needs')
    .option('--json', 'print JSON')
    .addHelpText('after', examples(['campaign doctor campaigns/mine.yaml', 'missing parts, each with its fix']))
    .action(async (file: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions<PortOptions>(command);
      const { doctorChecks, doctorLines } = await import('../doctor.js');
      const { runChecks } = await import('../../checks/check.js');
      const { loadCampaign } = await import('../campaign-file.js');
      const campaign = file ? loadCampaign({ file }) : undefined;
      const checks = await runChecks(doctorChecks({ home: homeOf(options), ports: options, campaign }));
      console.log(options.json ? JSON.stringify(checks) : doctorLines(checks, process.stdout.columns).join('\n'));
      if (checks.some(({ ok }) => !ok)) process.exitCode = 1;
    });

  program
    .command('schema')
    .description('print the JSON schema of campaign files, for editors')
    .option('--markdown', 'print a reference of all fields for people instead')
    .addHelpText('after', examples(['campaign schema > campaign.schema.json']))
    .action(async ({ markdown }: { markdown?: boolean }) => {
      const { campaignJsonSchema } = await import('../campaign-schema.js');
      const { campaignReference } = await import('../campaign-reference.js');
      const schema = campaignJsonSchema();
      console.log(markdown ? campaignReference(schema).trimEnd() : JSON.stringify(schema, null, 2));
    });
}

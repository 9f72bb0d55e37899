/** `campaign doctor` and `campaign schema`. */
import type { Command } from 'commander';
import { lazy } from '../lazy';
import { allOptions, homeOf, wholeNumber } from '../options';

export function inspectCommands(program: Command): void {
  program
    .command('doctor [file]')
    .description('what this machine has and lacks, and how to get it; with a campaign file, what that one needs')
    .option('--ui-port <port>', "port of Temporal's UI", wholeNumber(1, 65535), 8233)
    .option('--temporal-port <port>', 'port of the Temporal server', wholeNumber(1, 65535), 7233)
    .option('--json', 'print JSON')
    .action(async (file: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions<{ uiPort: number; temporalPort: number }>(command);
      const { examine, doctorLines } = lazy.doctor();
      const campaign = file ? lazy.campaignFile().loadCampaign({ file }) : undefined;
      const { uiPort, temporalPort, json } = options;
      const checks = await examine({ home: homeOf(options), uiPort, temporalPort, ...(campaign ? { campaign } : {}) });
      console.log(json ? JSON.stringify(checks) : doctorLines(checks).join('\n'));
      if (checks.some(({ ok }) => !ok)) process.exitCode = 1;
    });

  program
    .command('schema')
    .description('JSON schema of campaign files, for editors')
    .action(() => console.log(JSON.stringify(lazy.campaignSchema().campaignJsonSchema(), null, 2)));
}

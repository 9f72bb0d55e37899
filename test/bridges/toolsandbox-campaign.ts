/**
 * A campaign on ToolSandbox with capabilities that somebody brings, from base rollouts to selection. It needs a checkout, which TOOLSANDBOX
 * names, and `make bridges-toolsandbox`. The user, recorded, ends every conversation as soon as it is spoken to.
 */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { CampaignRun, reportOf, repository, writeCampaign } from '../support/campaign-run';
import { call, startChatServer } from '../support/chat-server';
import { closedAfterwards } from '../support/opened';
import { newFolder } from '../support/temporary-folder';

const folder = process.env['TOOLSANDBOX'];
const withFolder = folder === undefined ? test.skip : test;

withFolder(
  folder === undefined ? 'ToolSandbox campaign (skipped: TOOLSANDBOX names no checkout of it)' : 'ToolSandbox campaign',
  async () => {
    const home = newFolder();
    const user = closedAfterwards(await startChatServer(() => call('end_conversation', {})));
    const capabilities = join(home, 'capabilities.yaml');
    writeFileSync(
      capabilities,
      'capabilities:\n  - { name: resolve_missing_arguments, definition: Asks for what a tool needs and nobody has said. }\n',
    );
    const file = join(home, 'toolsandbox.yaml');
    writeCampaign({
      file,
      name: 'toolsandbox',
      target: { kind: 'toolsandbox', folder: resolve(folder!), user: { url: user.url, model: 'recorded' } },
      model: join(repository, 'models', 'base'),
      lines: `analyst: { kind: given, capabilities: ${capabilities} }
rollouts: { tasks: 12, concurrency: 4, maxSteps: 4 }
`,
    });
    await new CampaignRun({ root: home }, file, ['--force', '--until', 'selection']).finish();
    const report = reportOf({ root: home }, 'toolsandbox');
    expect(report.campaign).toMatchObject({ status: 'completed', stage: 'selection' });
    expect(report.rollouts).toMatchObject({ scored: { value: 12 }, broken: { value: 0 } });
    // Whether it is selected depends on the small base, which may say the same to everything.
    expect(report.selection?.candidates).toMatchObject([{ name: 'resolve_missing_arguments' }]);
  },
  20 * 60_000,
);

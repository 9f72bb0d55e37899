/** A plug-in is packed, installed into an empty folder without a network, and used by check, run, export and gateway. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fittedRouterSchema } from '../../src/routing/router';
import { openFolderStore } from '../../src/store/open-store';
import { artifactRefSchema } from '../../src/domain/artifacts';
import { ANY_REWARDS, CampaignRun, command, repository, reportOf, withGateway } from '../support/campaign-run';
import { temporaryFolder } from '../support/temporary-folder';

jest.setTimeout(20 * 60_000);
const folder = temporaryFolder();
const home = { root: join(folder, 'home') };
const file = join(folder, 'campaign.yaml');
const exported = join(folder, 'exported');

const CAMPAIGN = `
name: plugged
preset: demo
plugins: [${repository}/examples/shop, campaign-by-length]
target: { kind: shop }
baseModel: { path: ${repository}/models/base }
rollouts: { tasks: 16 }
analyst: { kind: given, capabilities: capabilities.json }
synthesizer: { kind: generators }
${ANY_REWARDS}training: { groupsPerStep: 2, groupSize: 4, steps: 2, checkpointEvery: 2 }
validation: { seeds: 4, targetTasks: 8 }
arms: []
router: { kind: by_length, tasks: 8, words: 7 }
evaluation: { tasks: 8 }
`;
const SHORT = 'cancel the red lamp .';
const LONG = 'my account is u12 . cancel the red lamp .';
const capabilities = [
  {
    name: 'tell_requested_information',
    definition: 'The user asks how much something is. The agent tells the amount.',
  },
];

beforeAll(async () => {
  const npm = (...args: string[]) => execFileSync('npm', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).trim();
  const packed = npm('pack', '--silent', join(repository, 'examples', 'plugin-minimal'));
  npm('install', '--offline', '--no-audit', '--no-fund', repository, `./${packed}`);
  writeFileSync(join(folder, 'capabilities.json'), JSON.stringify({ capabilities }));
  writeFileSync(file, CAMPAIGN);
});

test('the schema of the file knows its options, and check takes the file', async () => {
  const { properties } = JSON.parse(await command(home, 'schema', file)) as { properties: { router: unknown } };
  expect(JSON.stringify(properties.router)).toContain('"by_length"');
  const { requirements } = JSON.parse(await command(home, 'check', '--json', file)) as {
    requirements: { ok: boolean }[];
  };
  expect(requirements.every(({ ok }) => ok)).toBe(true);
  writeFileSync(join(folder, 'other.yaml'), CAMPAIGN.replace('campaign-by-length', 'campaign-by-width'));
  await expect(command(home, 'check', join(folder, 'other.yaml'))).rejects.toMatchObject({
    stderr: expect.stringMatching(
      /other\.yaml:4 plugins\[1\] is "campaign-by-width"; plug-in campaign-by-width is not found .*; install it in/,
    ),
  });
});

test('its router is fitted under its name and version, and plays', async () => {
  await new CampaignRun(home, file).finish();
  const { router, arms } = reportOf(home, 'plugged');
  expect(router?.kind).toBe('by_length');
  const ref = artifactRefSchema.parse(router?.crossValidation.routed.from[0]);
  const body = await openFolderStore(join(home.root, 'artifacts')).read(ref);
  const { maker } = fittedRouterSchema.parse(JSON.parse(String(body)));
  expect(maker).toMatchObject({ kind: 'by_length', plugin: 'campaign-by-length@1', options: { words: 7 } });
  expect(arms?.find(({ name }) => name === 'trace')).toMatchObject({ status: 'completed' });
});

/** The policies that play requests at the gateway of a campaign or a folder. */
const served = (...words: string[]) =>
  withGateway(home, words, async (url) => {
    const policies: (string | null)[] = [];
    for (const content of [SHORT, LONG]) {
      const body = JSON.stringify({ model: 'trace', messages: [{ role: 'user', content }] });
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${url}/chat/completions`, { method: 'POST', headers, body });
      policies.push(answer.headers.get('x-campaign-policy'));
    }
    return policies;
  });

test('the gateway routes by it where the plug-in is named', async () => {
  const policies = ['base', 'tell_requested_information'];
  const plugin = join(folder, 'node_modules', 'campaign-by-length');
  expect(await served('plugged', '--plugin', plugin)).toEqual(policies);
  await command(home, 'export', 'plugged', exported);
  await expect(served(exported)).rejects.toThrow(/plug-in campaign-by-length@1.*--plugin/);
  expect(await served(exported, '--plugin', plugin)).toEqual(policies);
});

/** `campaign list`, `delete` and `gc` on a home. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../../src/store/open-store';
import type { CampaignRow } from '../../../src/cli/campaign-status';
import { homeAt } from '../../../src/cli/project';
import { acquireLock } from '../../../src/cli/services/processes';
import { age } from '../../support/aged';
import { campaign, campaignCommand } from '../../support/campaign-command';
import { atEnd } from '../../support/opened';
import { inSteps, storedKeys } from '../../support/stored-keys';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let root: string;
eachTemporaryFolder((folder) => (root = folder));

const put = (key: string) => ({ key, producer: 'test', inputs: [], mediaType: 'text/plain', body: key.repeat(2000) });
const file = (...path: string[]) => {
  mkdirSync(join(root, ...path.slice(0, -1)), { recursive: true });
  writeFileSync(join(root, ...path), Buffer.alloc(9000, 1));
};
const command = (...words: string[]) => campaignCommand(root, ...words);
const keysLeft = async () => storedKeys(await openStore(root));

/** Campaigns `mine` and `other`, two days old, with a batch of both and a reply of each. */
async function twoCampaigns(): Promise<void> {
  const store = await openStore(root);
  for (const name of ['mine', 'other']) {
    const own = inSteps(store, name);
    for (const key of ['rollouts/shared', `reply/${name}`]) await own.put(put(key));
    file(name, 'report.json');
  }
  await store.put(put('reply/lost'));
  file('trainings', 'mine', 'tell-0123456789ab', 'metrics.jsonl');
  await age(root);
}

test('`list` names campaigns with a folder or results', async () => {
  await twoCampaigns();
  const store = await openStore(root);
  await inSteps(store, 'started').put(put('given/1'));
  await inSteps(store, 'elsewhere').put(put('report/1.json'));
  mkdirSync(homeAt(root).lock);
  const { campaigns } = JSON.parse((await command('list', '--json')).text) as { campaigns: CampaignRow[] };
  expect(new Map(campaigns.map(({ name, status }) => [name, status]))).toEqual(
    new Map(['mine', 'other', 'started', 'elsewhere'].map((name) => [name, 'without a report'])),
  );
});

test('`delete` removes what the campaign alone uses, and nothing of another one', async () => {
  await twoCampaigns();
  await expect(command('delete', 'mine')).rejects.toThrow('--yes');
  expect(existsSync(join(root, 'mine'))).toBe(true);
  expect((await command('delete', 'mine', '--yes')).code).toBe(0);
  expect(await keysLeft()).toEqual(['reply/other', 'rollouts/shared']);
  expect([existsSync(join(root, 'mine')), existsSync(join(root, 'other'))]).toEqual([false, true]);
  await expect(command('delete', 'mine', '--yes')).rejects.toThrow(/there is no campaign mine .* known: other/);
});

test('`gc` removes what no campaign uses, but for what was written within a day; a dry run counts as much', async () => {
  await twoCampaigns();
  await (await openStore(root)).put(put('reply/just lost'));
  file('trainings', 'mine', 'tell-ba9876543210', 'trainer.log');
  const counted = (await command('gc', '--dry-run')).text;
  expect(counted).toMatch(/^4 files, .* would be freed$/);
  expect(await keysLeft()).toHaveLength(5);
  expect((await command('gc')).text).toBe(counted.replace('would be freed', 'freed'));
  expect(await keysLeft()).toEqual(['reply/just lost', 'reply/mine', 'reply/other', 'rollouts/shared']);
  const trainings = ['tell-0123456789ab', 'tell-ba9876543210'].map((name) =>
    existsSync(join(root, 'trainings', 'mine', name)),
  );
  expect(trainings).toEqual([false, true]);
  expect(JSON.parse((await command('gc', '--json')).text)).toEqual({ dryRun: false, files: 0, bytes: 0 });
});

test('a home of version 0.2 is refused in one line that says what to do', async () => {
  mkdirSync(join(root, 'artifacts'), { recursive: true });
  writeFileSync(join(root, 'artifacts', 'id'), '0123456789ab');
  const shipped = join(__dirname, '../../..', 'campaigns', 'smoke.yaml');
  for (const words of [['run', shipped], ['list'], ['gc'], ['delete', 'mine', '--yes']]) {
    const { status, stderr } = await campaign(words, { env: { CAMPAIGN_HOME: root } });
    expect(status).toBe(words[0] === 'run' ? 1 : 2);
    expect(stderr.trim().split('\n').at(-1)).toMatch(/version 0\.2.*--home/);
  }
});

test('no campaign is deleted from a home that another command holds, and none is looked for where there is no home', async () => {
  await twoCampaigns();
  atEnd(await acquireLock(homeAt(root)));
  await expect(command('delete', 'mine', '--yes')).rejects.toThrow(/is in use by another .* end it/);
  expect(existsSync(join(root, 'mine'))).toBe(true);
  for (const words of [['list'], ['gc'], ['delete', 'mine', '--yes']])
    await expect(campaignCommand(join(root, 'none'), ...words)).rejects.toThrow(
      /there is no home .*none; name another/,
    );
});

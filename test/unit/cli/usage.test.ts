/**
 * `campaign list`, `du`, `delete` and `prune` on a home: their figures are those of the disk, of an old campaign nothing is claimed that nobody
 * knows, and what goes is what was said, and nothing of another campaign.
 */
import { existsSync, lstatSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { walk } from '../../../src/artifacts/content-store';
import { openStore } from '../../../src/artifacts/open-store';
import { notingUsage, usageOf } from '../../../src/artifacts/usage';
import { homeAt } from '../../../src/cli/project';
import { acquireLock } from '../../../src/cli/run/processes';
import { campaignIn, homeUse, sizeText, trainingFolders } from '../../../src/cli/home';
import { age } from '../../support/aged';
import { campaign, campaignCommand } from '../../support/campaign-command';
import { eachTemporaryFolder } from '../../support/temporary-folder';

jest.setTimeout(120_000); // commands load what they need
let root: string;
eachTemporaryFolder((folder) => (root = folder));

const put = (key: string) => ({ key, producer: 'test', inputs: [], mediaType: 'text/plain', body: key.repeat(2000) });
const file = (...path: string[]) => {
  mkdirSync(join(root, ...path.slice(0, -1)), { recursive: true });
  writeFileSync(join(root, ...path), Buffer.alloc(9000, 1));
};

test('shares of campaigns, and their sum, are what the disk says', async () => {
  const home = homeAt(root);
  const id = '0123456789ab';
  const store = notingUsage(await openStore(home.root), () => 'mine');
  await store.put(put(`training/${id}cdef`));
  await store.noted();
  await store.close();
  for (const path of [['mine', 'report.json'], ['old', 'report.json'], ['logs', 'x.log'], ['temporal.db']])
    file(...path);
  file('trainings', `a-${id}`, 'metrics.jsonl');
  file('trainings', 'b-ba9876543210', 'metrics.jsonl');
  const use = await homeUse(home);
  const onDisk = new Map((await walk(root)).map(({ path }) => [lstatSync(path).ino, lstatSync(path).blocks * 512]));
  expect(use.bytes).toBe([...onDisk.values()].reduce((sum, bytes) => sum + bytes, 0));
  const [mine, old] = ['mine', 'old'].map((name) => campaignIn(use, name, home));
  expect([mine?.isKnown, old?.isKnown]).toEqual([true, false]);
  expect(Object.keys(mine!.kinds).sort()).toEqual(['journals', 'reports', 'results', 'trainings']);
  expect(Object.keys(old!.kinds)).toEqual(['reports']);
  expect(() => campaignIn(use, 'nobody', home)).toThrow(/there is no campaign nobody .* known: mine, old/);
  const folders = trainingFolders(home, await usageOf(await openStore(home.root)));
  expect(folders.map(({ isStored, users }) => [isStored, ...users])).toEqual([[true, 'mine'], [false]]);
});

const command = (...words: string[]) => campaignCommand(root, ...words);
const bytesOnDisk = async () => (await homeUse(homeAt(root))).bytes;
const keysLeft = async () => (await (await openStore(root)).contents()).entries.map(({ key }) => key).sort();

/** Two days ago: campaigns `mine` and `other` with a batch of both, a reply and a stored training of each; `old` was run before uses were noted. */
async function twoCampaigns(): Promise<{ mine: string; other: string }> {
  const ids = { mine: '0123456789ab', other: 'ba9876543210' };
  const store = await openStore(root);
  for (const [name, id] of Object.entries(ids)) {
    const noting = notingUsage(store, () => name);
    for (const key of ['rollouts/shared', `reply/${name}`, `training/${id}cdef`]) await noting.put(put(key));
    await noting.close();
    file(name, 'report.json');
    file('trainings', `tell-${id}`, 'metrics.jsonl');
  }
  file('old', 'report.json');
  file('trainings', 'tell-cccccccccccc', 'metrics.jsonl');
  await age(root);
  const folder = (id: string) => join(root, 'trainings', `tell-${id}`);
  return { mine: folder(ids.mine), other: folder(ids.other) };
}

test('what is said to be alone is what `delete` frees, and whatever another campaign uses stays', async () => {
  const trainings = await twoCampaigns();
  const { alone } = JSON.parse((await command('du', 'mine', '--json')).text) as { alone: number };
  expect((await command('du', 'mine')).text).toContain(sizeText(alone));
  const before = await bytesOnDisk();
  await expect(command('delete', 'mine')).rejects.toThrow('--yes');
  expect(await bytesOnDisk()).toBe(before);

  const { text, code } = await command('delete', 'mine', '--yes');
  expect([code, text.split('\n').at(-1)]).toEqual([0, `${sizeText(before - (await bytesOnDisk()))} freed`]);
  expect(Math.abs(before - (await bytesOnDisk()) - alone)).toBeLessThan(alone / 4);
  expect(await keysLeft()).toEqual(['reply/other', 'rollouts/shared', 'training/ba9876543210cdef', 'usage/since']);
  expect([trainings.mine, trainings.other, join(root, 'mine')].map((path) => existsSync(path))).toEqual([
    false,
    true,
    false,
  ]);
  await expect(command('delete', 'mine', '--yes')).rejects.toThrow('mine');
});

test('of a campaign that was run before uses were noted only its folder is deleted', async () => {
  await twoCampaigns();
  const before = await keysLeft();
  await command('delete', 'old', '--yes');
  expect(existsSync(join(root, 'old'))).toBe(false);
  expect(await keysLeft()).toEqual(before);
});

test('`prune` removes folders of trainings that are stored and what no entry refers to, but for what was written within a day; a dry run says as much and removes nothing', async () => {
  const trainings = await twoCampaigns();
  const store = await openStore(root);
  for (const key of ['reply/lost', 'reply/just lost']) {
    await store.put(put(key));
    await store.forget(key);
    if (key === 'reply/lost') await age(root);
  }
  file('trainings', 'tell-ba9876543210', 'trainer.log');
  const said = (await command('prune', '--dry-run')).text;
  expect(said).toMatch(/^\S*tell-0123456789ab {2}\d[^\n]*\n2 files of the store .*\n.* would be freed$/);
  expect(existsSync(trainings.mine)).toBe(true);
  expect((await command('prune')).text).toBe(said.replace('would be freed', 'freed'));
  expect([trainings.mine, trainings.other].map((path) => existsSync(path))).toEqual([false, true]);
  expect(existsSync(join(root, 'trainings', 'tell-cccccccccccc'))).toBe(true);
  expect((await command('prune')).text).toMatch(/^0 files of the store/);
});

test('a home of version 0.2 is refused in one line that says what to do', async () => {
  mkdirSync(join(root, 'artifacts'), { recursive: true });
  writeFileSync(join(root, 'artifacts', 'id'), '0123456789ab');
  const shipped = join(__dirname, '../../..', 'campaigns', 'smoke.yaml');
  for (const words of [['run', shipped], ['list'], ['prune'], ['delete', 'mine', '--yes']]) {
    const { status, stderr } = await campaign(words, { env: { CAMPAIGN_HOME: root } });
    expect(status).toBe(1);
    expect(stderr.trim().split('\n').at(-1)).toMatch(/version 0\.2.*--home/);
  }
});

test('nothing is removed from a home that another command holds, nor looked for where there is none', async () => {
  await twoCampaigns();
  const release = await acquireLock(homeAt(root));
  const before = await bytesOnDisk();
  try {
    for (const words of [['prune'], ['delete', 'mine', '--yes']])
      await expect(command(...words)).rejects.toThrow(/is in use by another .* end it/);
    expect(await bytesOnDisk()).toBe(before);
  } finally {
    await release();
  }
  for (const words of [['list'], ['du'], ['prune'], ['delete', 'mine', '--yes']])
    await expect(campaignCommand(join(root, 'none'), ...words)).rejects.toThrow(
      /there is no home .*none; name another/,
    );
});

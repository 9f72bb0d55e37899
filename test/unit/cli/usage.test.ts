/** What the commands say of a home: its figures are those of the disk, and of an old campaign nothing is claimed that nobody knows. */
import { lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { walk } from '../../../src/artifacts/contents';
import { openStore } from '../../../src/artifacts/open-store';
import { notingUsage, usageOf } from '../../../src/artifacts/usage';
import { homeAt } from '../../../src/cli/project';
import { campaignIn, homeUse, trainingFolders } from '../../../src/cli/usage';

let root: string;
beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'home-'))));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const put = (key: string) => ({ key, producer: 'test', inputs: [], mediaType: 'text/plain', body: key.repeat(2000) });
const file = (...path: string[]) => {
  mkdirSync(join(root, ...path.slice(0, -1)), { recursive: true });
  writeFileSync(join(root, ...path), Buffer.alloc(9000, 1));
};

test('shares of campaigns, and their sum, are what the disk says', async () => {
  const home = homeAt(root);
  const id = '0123456789ab';
  await notingUsage(await openStore(home.root), () => 'mine').put(put(`training/${id}cdef`));
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
  expect(() => campaignIn(use, 'nobody', home)).toThrow(/there is no campaign nobody .* it has mine, old/);
  const folders = trainingFolders(home, await usageOf(await openStore(home.root)));
  expect(folders.map(({ isStored, users }) => [isStored, ...users])).toEqual([[true, 'mine'], [false]]);
});

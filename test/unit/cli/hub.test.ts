/** Base models by name: fields, the folder in the cache, and what is known of one that is not downloaded yet. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runChecks } from '../../../src/checks/check';
import { baseIdOf, loadCampaign, travelling } from '../../../src/cli/campaign-file';
import { modelChecks } from '../../../src/cli/check/model';
import { homeAt, pythonPath } from '../../../src/cli/project';
import { askHub, baseFolder, isToDownload } from '../../../src/policy/hub';
import { projectRoot } from '../../../src/store/project-root';
import { shopParts } from '../../support/kinds';
import { newFolder } from '../../support/temporary-folder';

const COMMIT = `c0ffee${'0'.repeat(34)}`;
const folder = newFolder();
const before = { ...process.env };
beforeEach(() => Object.assign(process.env, { HF_HOME: join(folder, 'cache'), HF_HUB_OFFLINE: '0' }));
afterEach(() => void (process.env = { ...before }));

function campaignWith(baseModel: object) {
  const file = join(folder, 'mine.yaml');
  writeFileSync(file, JSON.stringify({ name: 'mine', ...shopParts, baseModel }));
  return loadCampaign({ file });
}

test('a model that is named by its commit travels without a path, and is known where it is not', async () => {
  const home = homeAt(join(folder, 'home'));
  const campaign = campaignWith({ hub: 'owner/tiny', revision: COMMIT });
  const base = await baseIdOf(campaign, home);
  expect(base).toBe('owner/tiny@c0ffee000000');
  const { baseModel } = await travelling({ campaign, home, base, until: 'rollouts' });
  expect(baseModel).toEqual({ hub: 'owner/tiny', revision: COMMIT, id: base });
  const branch = campaignWith({ hub: 'owner/tiny' });
  await expect(baseIdOf(branch, home)).rejects.toMatchObject({ problems: [{ field: 'baseModel.hub' }] });
});

describe('with a hub on this machine', () => {
  let server: ChildProcess;
  beforeAll(async () => {
    const model = join(folder, 'model');
    mkdirSync(model);
    for (const name of ['config.json', 'tokenizer.json', 'model.safetensors']) writeFileSync(join(model, name), '{}');
    const args = ['-m', 'trainer.tests.hub_server', model];
    server = spawn(pythonPath(), args, { cwd: projectRoot, stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(server.stdout!, 'data')) as [Buffer];
    before['HF_ENDPOINT'] = process.env['HF_ENDPOINT'] = line.toString().trim();
  });
  afterAll(() => void server.kill());

  test('a check says size and licence, and nothing else of a model that is not there; a branch stays its commit', async () => {
    const campaign = campaignWith({ hub: 'owner/tiny' });
    const { baseModel } = campaign;
    expect(isToDownload(baseModel)).toBe(true);
    const items = modelChecks(campaign).filter(({ name }) => name !== 'policy server');
    const [check, ...others] = await runChecks(items.map((item) => ({ ...item, needs: [] })));
    expect(check).toMatchObject({ name: 'base model', ok: true });
    expect(check!.detail).toMatch(new RegExp(`^owner/tiny@${COMMIT}: 1 MB, licence apache-2.0`));
    expect(others).toEqual([]);
    const progress: number[] = [];
    const python = pythonPath();
    await askHub({ baseModel, download: true, python, onProgress: (done) => void progress.push(done) });
    expect(progress.at(-1)).toBe(6);
    expect(isToDownload(baseModel)).toBe(false);
    expect(baseFolder(baseModel)).toBe(baseFolder({ ...baseModel, revision: COMMIT }));
  });
});

/** What campaigns are started with: the same on every machine, whatever lies where on this one. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { readGivenFile } from '../../../src/analyst/given';
import { mapped } from '../../../src/activities/errors';
import { atHand, give } from '../../../src/store/given';
import { projectRoot } from '../../../src/store/project-root';
import { openStore } from '../../../src/store/open-store';
import { baseIdOf, configDigest, loadCampaign, travelling } from '../../../src/cli/campaign-file';
import { homeAt } from '../../../src/cli/project';
import { shopParts } from '../../support/kinds';
import { newFolder } from '../../support/temporary-folder';

const repository = resolve(__dirname, '../../..');
const shipped = join(repository, 'campaigns');
const fixtures = join(repository, 'test', 'fixtures', 'given');
const base = 'base@0123456789ab';
const home = homeAt(newFolder());

const textsIn = (value: unknown): string[] =>
  typeof value === 'string' ? [value] : Object.values((value ?? {}) as object).flatMap(textsIn);

test.each(readdirSync(shipped).filter((file) => file.endsWith('.yaml')))(
  '%s is valid, is started without a path of this machine, and finds its own again',
  async (file) => {
    const campaign = loadCampaign({ file: join(shipped, file) });
    expect(campaign.name).toBe(file.replace('.yaml', ''));
    const { path, hub } = campaign.baseModel;
    if (path !== undefined) expect(dirname(path)).toBe(join(repository, 'models'));
    else expect(hub).toMatch(/^[^/]+\/[^/]+$/);
    const sent = await travelling({ campaign, home, base });
    expect(textsIn(sent).filter((text) => text.startsWith('/'))).toEqual([]);
    expect(sent.baseModel).toMatchObject({ id: base, ...(hub && { hub }) });
    expect((await atHand(await openStore(home.root), sent)).target).toEqual(campaign.target);
  },
);

test('what is given is read from the store when its folder has gone; what is not there is said by the path of the file', async () => {
  const folder = newFolder();
  cpSync(fixtures, folder, { recursive: true });
  const file = join(folder, 'mine.yaml');
  const parts = {
    target: { kind: 'process', command: ['./play'], cwd: join(repository, 'examples') },
    analyst: { kind: 'given', capabilities: 'tau2-mock.yaml' },
    synthesizer: { kind: 'given', modules: 'tau2-mock' },
    arms: [{ kind: 'environments', from: { folder: 'tau2-mock' } }],
  };
  writeFileSync(file, JSON.stringify({ name: 'mine', baseModel: { path: 'model', id: base }, ...parts }));
  const campaign = loadCampaign({ file });
  const start = (until?: 'rollouts') => travelling({ campaign, home, base, ...(until && { until }) });
  expect(await baseIdOf(campaign, home)).toBe(base);
  const before = await readGivenFile(String(campaign.analyst['capabilities']));
  const sent = await start();
  expect(await start()).toEqual(sent);
  const [name = ''] = readdirSync(join(folder, 'tau2-mock')).filter((one) => one.endsWith('.js'));
  const module = readFileSync(join(folder, 'tau2-mock', name));
  writeFileSync(join(folder, 'tau2-mock', name), 'other words');
  expect(configDigest(await start())).not.toBe(configDigest(sent));
  rmSync(folder, { recursive: true });
  await expect(start()).rejects.toThrow(join(folder, 'tau2-mock.yaml'));
  expect((await start('rollouts')).analyst['capabilities']).toBe('tau2-mock.yaml');

  const store = await openStore(home.root);
  const { analyst, synthesizer, arms, target } = await atHand(store, sent);
  expect(target['cwd']).toBe(join(repository, 'examples'));
  expect(await readGivenFile(String(analyst['capabilities']))).toMatchObject({ capabilities: before.capabilities });
  const { folder: modules } = arms[0]!['from'] as { folder: string };
  for (const place of [modules, String(synthesizer['modules'])]) {
    expect(readdirSync(place)).toEqual([name]);
    expect(readFileSync(join(place, name))).toEqual(module);
  }
  await store.forget(`given/${(sent.synthesizer['modules'] as { $given: string }).$given}`);
  await expect(atHand(store, sent.synthesizer)).rejects.toMatchObject({ type: 'ArtifactDamaged' });
});

test('a base model is held against its id, and a machine that does not have it has to be told', async () => {
  const campaign = loadCampaign({ file: join(shipped, 'smoke.yaml') });
  const idOf = (baseModel: object) =>
    baseIdOf({ ...campaign, baseModel: { ...campaign.baseModel, ...baseModel } }, home);
  const id = await idOf({});
  expect(id).toMatch(/^base@[0-9a-f]{12}$/);
  expect(await idOf({ id: id.replace('base', 'other') })).toBe(id.replace('base', 'other'));
  const problem = (field: string, value: string) => ({ problems: [{ code: 'invalid_value', field, value }] });
  await expect(idOf({ id: base })).rejects.toMatchObject(problem('baseModel.id', base));
  await expect(idOf({ path: '/no/model' })).rejects.toMatchObject(problem('baseModel.path', '/no/model'));
});

/** What an activity is given of an input. */
const arriving = async <Input>(input: Input): Promise<Input> => {
  const { step } = mapped(
    { step: (given: Input) => Promise.resolve(given) },
    { home: home.root, store: await openStore(home.root) },
  );
  return new MockActivityEnvironment().run(step, input);
};

test('a path arrives as it lies on the machine; a text arrives as it is, whatever it says', async () => {
  const store = await openStore(home.root);
  const place = await give(store, { name: 'folder', files: { 'folder/a/b': 'y' } });
  const texts = ['project://docs/x says that this is wrong', `${projectRoot}/docs/README.md`, JSON.stringify(place)];
  const paths = { kind: 'given', modules: place, cwd: { $project: 'docs' }, beside: { $project: '../ToolSandbox' } };
  const arrived = await arriving({ texts, arms: [paths] });
  const modules = expect.stringMatching(/folder$/) as unknown as string;
  const [cwd, beside] = [join(projectRoot, 'docs'), join(projectRoot, '..', 'ToolSandbox')];
  expect(arrived).toEqual({ texts, arms: [{ kind: 'given', modules, cwd, beside }] });
  expect(readFileSync(join(String(arrived.arms[0]!.modules), 'a', 'b'), 'utf8')).toBe('y');

  const out = ['..', '../x', 'folder/../..', '/etc/passwd', '', '.', 'a//b'].map((path) => ({ ...place, path }));
  const outside = ['../..', '../../etc/passwd', '/etc/passwd', 'docs/../../..', './docs', 1].map(($project) => ({
    $project,
  }));
  for (const wrong of [...out, ...outside, { $given: 'x', path: 'folder' }, { $project: 'docs', more: 1 }])
    await expect(atHand(store, [wrong])).rejects.toMatchObject({ type: 'BadInput' });
});

test('of a campaign only what its kinds call paths is taken for one', async () => {
  const file = join(newFolder(), 'mine.yaml');
  const write = (target: object) =>
    writeFileSync(file, JSON.stringify({ name: 'mine', ...shopParts, target, baseModel: { path: 'model', id: base } }));
  const inside = join(repository, 'examples');
  const target = {
    ...{ kind: 'process', command: ['python3', join(inside, 'x.py'), '-v'], cwd: inside },
    user: { url: 'http://127.0.0.1:8000/v1', model: inside },
  };
  write(target);
  const sent = await travelling({ campaign: loadCampaign({ file }), home, base });
  expect(sent.target).toMatchObject({
    ...target,
    command: ['python3', { $project: 'examples/x.py' }, '-v'],
    cwd: { $project: 'examples' },
  });
  expect((await arriving(sent)).target).toEqual(loadCampaign({ file }).target);
  write({ kind: 'verifiers', environment: 'x', venv: inside, arguments: { $project: 'x' } });
  await expect(travelling({ campaign: loadCampaign({ file }), home, base })).rejects.toThrow(/\$project/);
});

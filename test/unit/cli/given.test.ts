/** What campaigns are started with: the same on every machine, whatever lies where on this one. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { readGivenFile } from '../../../src/analyst/given';
import { mapped } from '../../../src/activities/errors';
import { atHand, give } from '../../../src/store/given';
import { projectRoot } from '../../../src/store/project-root';
import { openStore } from '../../../src/store/open-store';
import { baseIdOf, loadCampaign, travelling } from '../../../src/cli/campaign-file';
import { homeAt } from '../../../src/cli/project';
import { shopParts } from '../../support/kinds';
import { newFolder } from '../../support/temporary-folder';

jest.setTimeout(60_000);
const repository = resolve(__dirname, '../../..');
const shipped = join(repository, 'campaigns');
const fixtures = join(repository, 'test', 'fixtures', 'given');
const base = 'base@0123456789ab';
const home = homeAt(newFolder());
afterAll(() => rmSync(home.root, { recursive: true, force: true }));

const textsIn = (value: unknown): string[] =>
  typeof value === 'string' ? [value] : Object.values((value ?? {}) as object).flatMap(textsIn);

test.each(readdirSync(shipped).filter((file) => file.endsWith('.yaml')))(
  '%s is valid, is started without a path of this machine, and finds its own again',
  async (file) => {
    const campaign = loadCampaign({ file: join(shipped, file) });
    expect(campaign.name).toBe(file.replace('.yaml', ''));
    expect(dirname(campaign.baseModel.path)).toBe(join(repository, 'models'));
    const sent = await travelling({ campaign, home, base });
    expect(textsIn(sent).filter((text) => text.startsWith('/'))).toEqual([]);
    expect(sent.baseModel.id).toBe(base);
    expect((await atHand(await openStore(home.root), sent)).target).toEqual(campaign.target);
  },
);

test('what is given is read from the store when its folder has gone; what is not there is said by the path of the file', async () => {
  const folder = newFolder();
  cpSync(fixtures, folder, { recursive: true });
  const file = join(folder, 'mine.yaml');
  cpSync(join(repository, 'prompts'), join(folder, 'prompts'), { recursive: true });
  writeFileSync(
    file,
    `name: mine\ntarget: { kind: process, command: [./play], cwd: ${join(repository, 'examples')} }\nbaseModel: { path: model, id: ${base} }\n` +
      'analyst: { kind: given, capabilities: tau2-mock.yaml }\nsynthesizer: { kind: llm, url: http://127.0.0.1:8000, model: m, prompts: prompts }\n' +
      'arms: [{ kind: environments, from: { folder: tau2-mock } }]\n',
  );
  const campaign = loadCampaign({ file });
  expect(await baseIdOf(campaign, home)).toBe(base);
  const before = await readGivenFile(String(campaign.analyst['capabilities']));
  const sent = await travelling({ campaign, home, base });
  expect(await travelling({ campaign, home, base })).toEqual(sent);
  expect(sent.target['cwd']).toEqual({ $project: 'examples' });
  rmSync(folder, { recursive: true });
  await expect(travelling({ campaign, home, base })).rejects.toThrow(join(folder, 'tau2-mock.yaml'));
  expect((await travelling({ campaign, home, base, until: 'rollouts' })).analyst['capabilities']).toBe(
    'tau2-mock.yaml',
  );

  const store = await openStore(home.root);
  const { analyst, synthesizer, arms, target } = await atHand(store, sent);
  expect(target['cwd']).toBe(join(repository, 'examples'));
  expect(await readGivenFile(String(analyst['capabilities']))).toMatchObject({ capabilities: before.capabilities });
  expect(readdirSync(String(synthesizer['prompts']))).toContain('environment.md');
  const { folder: modules } = arms[0]!['from'] as { folder: string };
  const names = readdirSync(join(fixtures, 'tau2-mock')).filter((name) => name.endsWith('.js'));
  expect(readdirSync(modules).sort()).toEqual(names.sort());
  for (const name of names)
    expect(readFileSync(join(modules, name))).toEqual(readFileSync(join(fixtures, 'tau2-mock', name)));
  await store.forget(`given/${(sent.synthesizer['prompts'] as { $given: string }).$given}`);
  await expect(atHand(store, sent.synthesizer)).rejects.toMatchObject({ type: 'ArtifactDamaged' });
});

test('a base model is held against its id, and a machine that does not have it has to be told', async () => {
  const campaign = loadCampaign({ file: join(shipped, 'smoke.yaml') });
  const named = (baseModel: object) => ({ ...campaign, baseModel: { ...campaign.baseModel, ...baseModel } });
  const id = await baseIdOf(campaign, home);
  expect(id).toMatch(/^base@[0-9a-f]{12}$/);
  const other = id.replace('base', 'other');
  expect(await baseIdOf(named({ id: other }), home)).toBe(other);
  const refused = (baseModel: object, problem: object) =>
    expect(baseIdOf(named(baseModel), home)).rejects.toMatchObject({
      problems: [{ code: 'invalid_value', ...problem }],
    });
  await refused({ id: base }, { field: 'baseModel.id', value: base });
  await refused({ path: '/no/model' }, { field: 'baseModel.path', value: '/no/model' });
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
  const files = { 'lines.jsonl': 'x', 'folder/a/b': 'y' };
  const store = await openStore(home.root);
  const place = await give(store, { name: 'folder', files });
  const contents = '$given' in place ? place.$given : '';
  const texts = [
    'project://docs/x says that this is wrong',
    `given:${contents}/folder`,
    `given:${contents}/..`,
    `${projectRoot}/docs/README.md`,
    JSON.stringify(place),
    '{"$project": "docs"}',
  ];
  const said = { reason: texts[0], texts, feedback: Object.fromEntries(texts.map((text) => [text, text])) };
  expect(await arriving(said)).toEqual(said);
  const paths = { kind: 'given', modules: place, cwd: { $project: 'docs' }, beside: { $project: '../ToolSandbox' } };
  const arrived = await arriving({ ...said, arms: [paths] });
  expect(arrived).toMatchObject(said);
  const [{ modules, ...others }] = arrived.arms as unknown as [Record<string, string>];
  expect(readFileSync(join(modules!, 'a', 'b'), 'utf8')).toBe('y');
  expect(others).toEqual({
    kind: 'given',
    cwd: join(projectRoot, 'docs'),
    beside: join(projectRoot, '..', 'ToolSandbox'),
  });

  for (const path of ['..', '../x', 'folder/../..', '/etc/passwd', '', '.', 'a//b'])
    await expect(atHand(store, { modules: { ...place, path } })).rejects.toMatchObject({ type: 'BadInput' });
  for (const $project of ['../..', '../../etc/passwd', '/etc/passwd', 'docs/../../..', './docs'])
    await expect(atHand(store, { cwd: { $project } })).rejects.toMatchObject({ type: 'BadInput' });
  for (const odd of [{ $given: 'x', path: 'folder' }, { $project: 1 }, { $project: 'docs', more: 1 }])
    await expect(atHand(store, [odd])).rejects.toMatchObject({ type: 'BadInput' });
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

/** What plug-ins add to the kinds of the program, and what is refused. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { homeAt } from '../../src/cli/project';
import { pluginsToLoad } from '../../src/cli/services/allowed';
import type { ArtifactStore } from '../../src/store/store';
import { kindOf } from '../../src/domain/kinds';
import { openEnvironment } from '../../src/environments/kinds';
import { withPlugins } from '../../src/plugins';
import { planBatch } from '../../src/rollout/batch';
import { registry } from '../support/kinds';
import { newFolder } from '../support/temporary-folder';

const KIND = `{ kind: 'mine', version: '1', options: {}, paths: [], given: {}, read: (spec) => spec, open: () => ({ identity: {} }) }`;

/** A plug-in of one file that exports these fields. */
function pluginOf(fields: Record<string, string>): string {
  const path = join(newFolder(), 'plugin.js');
  const all = Object.entries({ name: `'mine'`, version: `'1'`, ...fields });
  writeFileSync(path, all.map(([name, value]) => `exports.${name} = ${value};\n`).join(''));
  return path;
}

test('a reward of its targets that is no reward is refused', async () => {
  for (const reward of ['NaN', '1.5', '-0.1', '1.00001', 'Infinity']) {
    const episode = `{ evaluate: async () => ({ reward: ${reward}, breakdown: {} }) }`;
    const open = `() => ({ reset: async () => (${episode}) })`;
    const { environments: kinds } = withPlugins([pluginOf({ targets: `[{ ...${KIND}, open: ${open} }]` })]);
    const environment = await openEnvironment({ kind: 'mine' }, { store: {} as ArtifactStore, kinds });
    const { evaluate } = await environment.reset({ id: 'a', seed: 1 });
    await expect(evaluate('user_stop')).rejects.toMatchObject({ type: 'BadEnvironment' });
  }
});

describe('keys', () => {
  test('of what its kinds make hold the plug-in', async () => {
    const { identity } = await kindOf(registry.analysts, { kind: 'rules' }).open({ kind: 'rules' }, undefined);
    expect(identity).toMatchObject({ kind: 'rules', plugin: 'shop@1' });
    const context = { store: {} as ArtifactStore, kinds: registry.environments };
    const environment = await openEnvironment({ kind: 'shop' }, context);
    expect(await environment.describe()).toMatchObject({ name: 'shop', version: '1', plugin: 'shop@1' });
  });

  test('of batches change with it, and the random numbers of their rollouts do not', () => {
    const planned = (plugin?: string) =>
      planBatch({
        campaign: 'one',
        environment: { name: 'e', version: '1', ...(plugin && { plugin }) },
        policy: { base: 'b', adapters: [] },
        sampling: { temperature: 1, topP: 1, maxTokens: 16 },
        ...{ seed: 1, tasks: ['t'], attempts: 2, shown: new Map() },
      });
    const [none, one, other] = [planned(), planned('mine@1'), planned('mine@2')];
    for (const field of ['key', 'chunks', 'setting'] as const)
      expect(new Set([none[field], one[field], other[field]]).size).toBe(3);
    expect([one.rollouts, other.rollouts]).toEqual([none.rollouts, none.rollouts]);
  });
});

test('a process without the plug-in of a part, or with another version of it, says so', () => {
  const analyst = { kind: 'rules', plugin: 'shop@1' };
  expect(kindOf(registry.analysts, analyst)).toMatchObject(analyst);
  const missing = expect.objectContaining({ type: 'PluginMissing', message: expect.stringContaining('--plugin') });
  expect(() => kindOf(withPlugins([]).analysts, analyst)).toThrow(missing as Error);
  expect(() => kindOf(registry.analysts, { ...analyst, plugin: 'shop@2' })).toThrow(missing as Error);
});

test.each<[what: string, paths: () => string[], problem: RegExp]>([
  ['without a name', () => [pluginOf({ name: 'undefined' })], /plugin\.js: name: .*docs\/extending\.md/],
  ['whose kind is none', () => [pluginOf({ routers: `[{ kind: 'mine' }]` })], /routers.* defineKind/],
  [
    'with a kind that is there',
    () => [pluginOf({ analysts: `[${KIND.replace('mine', 'llm')}]` })],
    /analysts: there is a kind "llm" already/,
  ],
  ['under a name that is taken', () => [pluginOf({}), pluginOf({})], /a second plug-in named mine/],
  ['that is not there', () => ['/no/plugin'], /\/no\/plugin cannot be loaded/],
  [
    'that throws',
    () => [pluginOf({ version: '(() => { throw new Error("broken") })()' })],
    /cannot be loaded \(broken\)/,
  ],
])('a plug-in %s is refused', (_what, paths, problem) => {
  expect(() => withPlugins(paths())).toThrow(problem);
});

test('a home’s workers load the plug-ins of all its open campaigns, the campaign’s own first', async () => {
  const home = homeAt(newFolder());
  const [own, other] = [pluginOf({ name: `'own'` }), pluginOf({ name: `'other'` })];
  const broken = pluginOf({ name: `'own'` });
  writeFileSync(
    home.allowed,
    JSON.stringify({ first: { programs: [], variables: [], plugins: [other, own, broken] } }),
  );
  const notes: string[] = [];
  expect(pluginsToLoad(home, { plugins: [own] }, (note) => notes.push(note))).toEqual([own, other]);
  expect(notes).toEqual([expect.stringMatching(/second plug-in named own.*; steps of other campaigns/)]);
});

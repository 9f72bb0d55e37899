/** Capabilities from a file, with labels and without. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { given } from '../../../src/analyst/given';
import { selectionRuleSchema } from '../../../src/domain/campaign';
import type { EnvironmentDescription } from '../../../src/domain/environment';
import { noLedger } from '../../support/memory-ledger';
import { newFolder } from '../../support/temporary-folder';

const description: EnvironmentDescription = {
  ...{ name: 'flights', version: '1', policy: '', tools: [], maxSteps: 10, hasReference: false },
};
const work = { progress: () => {}, signal: new AbortController().signal, seed: 1, ledger: noLedger };
const capabilities = [
  { name: 'ask_user', definition: 'Asks.', examples: ['k1', 'k2'] },
  { name: 'check_status', definition: 'Checks.' },
];
function passOf(lacking: string, names = ['ask_user', 'check_status']) {
  const one = {
    ...{ lacking_failed: [lacking], present_failed: ['other'], na_failed: [] },
    ...{ lacking_passed: [], present_passed: [3], na_passed: [] },
  };
  const totals = { total_failed: 2, total_passed: 1 };
  return { attempt: 0, totals, labels: Object.fromEntries(names.map((name) => [name, one])) };
}

interface Given {
  fields: object | string;
  labels?: Record<string, object>;
}
/** A folder with `given.json` (or text as given.yaml) and the label files. */
function folderWith({ fields, labels = {} }: Given): string {
  const folder = newFolder();
  const file = join(folder, typeof fields === 'string' ? 'given.yaml' : 'given.json');
  writeFileSync(file, typeof fields === 'string' ? fields : JSON.stringify(fields));
  mkdirSync(join(folder, 'passes'));
  for (const [name, pass] of Object.entries(labels)) writeFileSync(join(folder, 'passes', name), JSON.stringify(pass));
  return file;
}
const open = (input: Given) => given.open({ kind: 'given', capabilities: folderWith(input) }, undefined);
const badInput = (message: RegExp) => ({ type: 'BadInput', message: expect.stringMatching(message) });
const discover = (quotable: string[] = [], maxCandidates = 10) => ({
  rollouts: [],
  quotable: new Set(quotable),
  description,
  rule: { maxCandidates },
  ...work,
});
const rule = selectionRuleSchema.parse({});
const labelInput = (pass: number) => ({ rollouts: [], description, candidates: [], pass, ...work });

const labeled = {
  fields: { capabilities, labels: 'passes' },
  labels: { 'run_10.json': passOf('tenth'), 'run_2.json': passOf('second'), 'notes.json': {} },
};

describe('the given analyst', () => {
  it('selects the capabilities of a YAML file outright, on any target', async () => {
    const analyst = await open({
      fields: 'capabilities:\n  - name: ask_user\n    definition: Asks.\n    examples: [k1, k2]\n',
    });
    expect(analyst.selects).toBe('outright');
    expect(analyst.unsuited?.(description, rule)).toBeUndefined();
    expect(await analyst.discover(discover(['k2', 'k3']))).toEqual({
      candidates: [{ name: 'ask_user', definition: 'Asks.', examples: ['k2'] }],
      faults: [],
    });
  });

  it('gives the passes of a labels folder in the order of their numbers', async () => {
    const analyst = await open(labeled);
    expect(analyst.selects).toBe('by labels');
    expect((await analyst.discover(discover())).candidates.map(({ name, examples }) => [name, examples])).toEqual([
      ['ask_user', []],
      ['check_status', []],
    ]);
    const lacking = async (pass: number) => (await analyst.label(labelInput(pass))).labels['ask_user']?.lacking_failed;
    expect([await lacking(0), await lacking(1)]).toEqual([['second'], ['tenth']]);
    expect((await analyst.label(labelInput(0))).labels['ask_user']?.present_passed).toEqual(['3']);
    await expect(analyst.label(labelInput(2))).rejects.toMatchObject(badInput(/selection\.passes/));
  });

  it('is known by what its files hold, not by where they lie', async () => {
    const identity = async (input: Given) => (await open(input)).identity;
    const one = await identity(labeled);
    expect(one).toMatchObject({ kind: 'given', version: '1' });
    expect(JSON.stringify(one)).not.toContain(tmpdir());
    expect(await identity(labeled)).toEqual(one);
    const relabeled = { ...labeled, labels: { ...labeled.labels, 'run_2.json': passOf('2nd') } };
    const [first, second] = capabilities;
    const fields = { ...labeled.fields, capabilities: [{ ...first, definition: 'x' }, second] };
    for (const other of [relabeled, { ...labeled, fields }, { fields: { capabilities } }])
      expect(await identity(other)).not.toEqual(one);
  });

  it('says before anything is spent which field of the rule does not fit', async () => {
    const analyst = await open({ fields: { capabilities } });
    expect((await analyst.discover(discover([], 2))).candidates).toHaveLength(2);
    expect(analyst.unsuited?.(description, { ...rule, maxCandidates: 1 })).toContain('selection.maxCandidates');
    const withLabels = await open(labeled);
    expect(withLabels.unsuited?.(description, { ...rule, passes: 2 })).toBeUndefined();
    expect(withLabels.unsuited?.(description, rule)).toContain('selection.passes');
  });

  const named = (name: unknown) => ({ capabilities: [{ name, definition: 'd' }] });
  const twice = [...capabilities, capabilities[0]];
  it.each<[string, object | string, field: string]>([
    [
      'text that is not valid Unicode',
      'capabilities: [{ name: ask_user, definition: "cut \\ud83d" }]',
      'capabilities.0.definition',
    ],
    ['no YAML', 'capabilities: [', 'given.yaml'],
    ['an empty file', '', 'given.yaml'],
    ['no capabilities', {}, 'capabilities'],
    ['an empty list', { capabilities: [] }, 'capabilities'],
    ['a bad name', named('Ask'), 'capabilities.0.name'],
    ['a name of the report', named('oracle'), 'capabilities.0.name'],
    ['no definition', { capabilities: [{ name: 'a_b' }] }, 'capabilities.0.definition'],
    ['an unknown field', { capabilities, label: 'x' }, 'label'],
    ['a name twice', { capabilities: twice }, 'capabilities.2.name'],
    ['no folder', { capabilities, labels: 'nowhere' }, 'labels'],
    ['a folder without files', labeled.fields, 'labels'],
  ])('refuses %s', async (_, fields, field) => {
    await expect(open({ fields })).rejects.toMatchObject(badInput(new RegExp(field)));
  });

  it.each<[string, object]>([
    ['leaves out a capability', passOf('x', ['ask_user'])],
    ['has another capability', passOf('x', ['ask_user', 'check_status', 'be_polite'])],
    ['is no partition', passOf('other')],
  ])('refuses a pass that %s', async (_, pass) => {
    const refused = open({ ...labeled, labels: { 'run_0.json': pass } });
    await expect(refused).rejects.toMatchObject(badInput(/run_0\.json: /));
  });
});

/** Capabilities from a file. */
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { given } from '../../../src/analyst/given';
import { selectionRuleSchema } from '../../../src/domain/campaign';
import { description } from '../../support/analyst-llm';
import { noLedger } from '../../support/memory-ledger';
import { newFolder } from '../../support/temporary-folder';

const capabilities = [
  { name: 'ask_user', definition: 'Asks.', examples: ['k1', 'k2'] },
  { name: 'check_status', definition: 'Checks.' },
];

/** Opens a file with these fields, or this text. */
async function open(fields: object | string) {
  const file = join(newFolder(), 'given.yaml');
  writeFileSync(file, typeof fields === 'string' ? fields : JSON.stringify(fields));
  return given.open({ kind: 'given', capabilities: file }, undefined);
}

it('selects the capabilities of a YAML file outright', async () => {
  const analyst = await open('capabilities:\n  - name: ask_user\n    definition: Asks.\n    examples: [k1, k2]\n');
  expect(analyst).toMatchObject({ selects: 'outright', selected: 1 });
  const rule = selectionRuleSchema.parse({});
  const work = { progress: () => {}, signal: new AbortController().signal, seed: 1, ledger: noLedger };
  const quotable = new Set(['k2', 'k3']);
  expect(await analyst.discover({ rollouts: [], quotable, description, rule, ...work })).toEqual({
    candidates: [{ name: 'ask_user', definition: 'Asks.', examples: ['k2'] }],
    faults: [],
  });
});

it('is known by what its file holds, not by where it lies', async () => {
  const { identity } = await open({ capabilities });
  expect(JSON.stringify(identity)).not.toContain(tmpdir());
  expect((await open({ capabilities })).identity).toEqual(identity);
  expect((await open({ capabilities: capabilities.slice(1) })).identity).not.toEqual(identity);
});

const named = (name: unknown) => ({ capabilities: [{ name, definition: 'd' }] });
it.each<[string, object | string, field: string]>([
  ['no YAML', 'capabilities: [', 'given.yaml'],
  ['an empty file', '', 'given.yaml'],
  ['no capabilities', {}, 'capabilities'],
  ['an empty list', { capabilities: [] }, 'capabilities'],
  ['a bad name', named('Ask'), 'capabilities.0.name'],
  ['a name of the report', named('oracle'), 'capabilities.0.name'],
  ['no definition', { capabilities: [{ name: 'a_b' }] }, 'capabilities.0.definition'],
  ['an unknown field', { capabilities, label: 'x' }, 'label'],
  ['the labels of 0.2', { capabilities, labels: 'x' }, 'labels: label files were removed'],
  ['a name twice', { capabilities: [...capabilities, capabilities[0]] }, 'capabilities.2.name'],
])('refuses %s', async (_, fields, field) => {
  const message = expect.stringContaining(field) as string;
  await expect(open(fields)).rejects.toMatchObject({ type: 'BadInput', message });
});

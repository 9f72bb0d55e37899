/** Each field, kind and listed value of the campaign files of 0.2 (test/fixtures/schema-0.2.txt) is accepted, with the shop's plug-in, or refused with its replacement. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { campaignJsonSchema } from '../../../src/cli/campaign-schema';
import { findRemoved } from '../../../src/cli/removed-fields';
import { registry } from '../../support/kinds';
import { schemaPaths } from '../../docs/schema-paths';

const before = readFileSync(join(__dirname, '../../fixtures/schema-0.2.txt'), 'utf8').trim().split('\n');
const today = new Set(schemaPaths(campaignJsonSchema(registry)));

/** Returns a file that holds the field, kind or value of a path, and nothing else. */
function fileWith(path: string): unknown {
  const [, name, list, variant, rest = ''] = /^([^[{.=]*)(\[\])?(?:\{([^}]*)\})?(.*)$/.exec(path)!;
  if (rest.startsWith('=')) return { [name!]: list ? [rest.slice(1)] : rest.slice(1) };
  const constants = Object.fromEntries((variant ?? '').split(',').flatMap((pair) => (pair ? [pair.split('=')] : [])));
  const inner = rest.startsWith('.') ? fileWith(rest.slice(1)) : variant ? {} : true;
  const value = typeof inner === 'object' ? { ...constants, ...inner } : inner;
  return { [name!]: list ? [value] : value };
}

it('lists 0.2 as a whole', () => {
  expect(before.length).toBeGreaterThan(400);
  expect(before).toContain('target{kind=agent}.maxProcesses');
});

it.each(before.filter((path) => !today.has(path)))('%s is refused with its replacement', (path) => {
  expect(findRemoved(fileWith(path))).not.toEqual([]);
});

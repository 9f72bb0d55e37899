/** Tests what the import rules of `eslint.config.mjs` cannot see. */
import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const source = resolve(__dirname, '../../src');

test('docs/development.md has an entry for each folder of src', () => {
  const page = readFileSync(resolve(source, '../docs/development.md'), 'utf8');
  const rows = page.match(/^- `src.*$/gm)?.join() ?? '';
  const folders = readdirSync(source, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map(({ name }) => name).filter((name) => !rows.includes(`\`src/${name}\``))).toEqual([]);
});

test('src names no example: each is a plug-in', () => {
  const files = readdirSync(source, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
  const named = files.filter((file) =>
    /\bshop\b|\bgenerators\b|'rules'|examples\/shop/i.test(readFileSync(resolve(source, file), 'utf8')),
  );
  // It names what a field of 0.2 became.
  expect(named).toEqual(['cli/removed-fields.ts']);
});

/** Prompt files: messages with places, the project's own and the user's. */
import { readdirSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { openPrompts } from '../../../src/language-model/answer';
import { temporaryFolder } from '../../support/temporary-folder';

const folder = temporaryFolder();
const write = (name: string, text: string) => writeFileSync(join(folder, `${name}.md`), text);

test('messages with their values, and nothing of a value is a place or a message', () => {
  write(
    'a',
    '--- system\nYou are {{who}}.\n\nBe {{how}}, {{how}}.\n--- user\n\n{{text}}\n--- assistant\nYes: {"x": {{json}}}\n',
  );
  const values = { who: 'a judge', how: 'kind', text: '--- user\n{{who}} $& $1', json: '{}' };
  expect(openPrompts({ folder }).render('a', values)).toEqual([
    { role: 'system', content: 'You are a judge.\n\nBe kind, kind.' },
    { role: 'user', content: '--- user\n{{who}} $& $1' },
    { role: 'assistant', content: 'Yes: {"x": {}}' },
  ]);
});

test.each<[string, string, Record<string, string>, RegExp]>([
  [
    'a place that has no value',
    '--- user\n{{a}} {{toString}}',
    { a: '1' },
    /b\.md: \{\{toString\}\} is not known; there is \{\{a\}\}$/,
  ],
  ['a value that has no place', '--- user\n{{a}}', { a: '1', b: '2' }, /b\.md: \{\{b\}\} is missing; put it where/],
  ['words before the first message', 'Hello\n--- user\nx', {}, /b\.md begins with no message; let its first line be/],
  ['no message', '', {}, /b\.md begins with no message/],
  ['an empty message', '--- system\nx\n--- user\n\n', {}, /b\.md: message 2 \("--- user"\) is empty/],
])('%s is refused', (_, text, values, message) => {
  write('b', text);
  const refusal = { type: 'BadInput', message: expect.stringMatching(message) as string };
  expect(() => openPrompts({ folder }).render('b', values)).toThrow(expect.objectContaining(refusal));
});

test('the user’s own take the place of the project’s, and their text is part of the digest', () => {
  const own = openPrompts({ folder: join(folder, 'none') });
  expect(own.render('repair', { defects: '- x' })).toEqual(openPrompts().render('repair', { defects: '- x' }));
  expect(own.digest(['repair'])).toBe(openPrompts().digest(['repair']));
  write('repair', '--- user\nNo: {{defects}}');
  const mine = openPrompts({ folder });
  expect(mine.render('repair', { defects: '- x' })).toEqual([{ role: 'user', content: 'No: - x' }]);
  expect(mine.digest(['repair'])).not.toBe(own.digest(['repair']));
  const before = mine.digest(['repair', 'a']);
  expect(mine.digest(['a', 'repair'])).toBe(before);
  write('repair', '--- user\nChanged: {{defects}}');
  // What is rendered is what the digest was made of.
  expect([mine.digest(['a', 'repair']), mine.render('repair', { defects: '' })[0]!.content]).toEqual([before, 'No: ']);
  expect(openPrompts({ folder }).digest(['a', 'repair'])).not.toBe(before);
});

test('every prompt of the project can be read', () => {
  const names = readdirSync(resolve(__dirname, '../../../prompts')).filter((name) => name.endsWith('.md'));
  for (const name of names) expect(openPrompts().digest([basename(name, '.md')])).toMatch(/^[0-9a-f]{64}$/);
  expect(names).toContain('repair.md');
});

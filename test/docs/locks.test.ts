/** Every list of Python packages that something installs from names hashes, and no package index. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(__dirname, '../..');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const LIST = /(requirements\.txt|\.lock)$/;
const lists = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((file) => LIST.test(file));

test.each(lists)('each line of %s pins a package and names the hashes of its files', (file) => {
  const lines = read(file)
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(lines.filter((line) => !/^[\w.-]+==[\w.+-]+( ;[^\n]*?)?( --hash=sha256:[0-9a-f]{64})+$/.test(line))).toEqual(
    [],
  );
  expect(read(file)).not.toMatch(/:\/\/|--(extra-)?index|--find-links/);
});

test('make and the images install from these lists alone, and by hash', () => {
  const installs = [...read('Makefile').matchAll(/^[^#\n]*(?:pip install|\$\(INSTALL\)).*$/gm)].map(([line]) => line);
  const isHashed = (line: string) => /\$\(INSTALL\)|--require-hashes|campaign_adapters/.test(line);
  expect(installs.filter((line) => !isHashed(line))).toEqual([]);
  expect(read('Makefile')).toMatch(/^INSTALL := .*--no-deps --require-hashes$/m);
  expect(read('deploy/Dockerfile')).toMatch(/PIP_NO_DEPS=1 PIP_REQUIRE_HASHES=1/);
  const named = [
    ...`${read('Makefile')}${read('deploy/Dockerfile')}`.matchAll(/[\w/-]*(?:requirements\.txt|\.lock)\b/g),
  ];
  const unknown = named.map(([file]) => file).filter((file) => !lists.some((list) => list.endsWith(file)));
  expect(unknown).toEqual([]);
});

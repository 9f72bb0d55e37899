import { spawn } from 'node:child_process';
import { cpSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { openFolderStore } from '../../../src/store/open-store';
import { canonical, digest } from '../../../src/store/hash';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let root: string;
eachTemporaryFolder((folder) => (root = folder));
/** A Node that runs this program, for which `source(name)` is a file of src/store. */
const run = (program: string, ...args: string[]) => {
  const hook = resolve(__dirname, '../../support/register.cjs');
  const source = `const source = (name) => require(${JSON.stringify(resolve(__dirname, '../../../src/store'))} + '/' + name);`;
  return spawn(process.execPath, ['-r', hook, '-e', source + program, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
};

describe('hash', () => {
  test('canonical JSON ignores the order of fields and undefined ones', () => {
    expect(canonical({ b: [1, { d: 'x', c: null }], a: undefined })).toBe('{"b":[1,{"c":null,"d":"x"}]}');
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const reversed = Object.fromEntries(Object.entries(value).reverse());
        expect(digest(reversed)).toBe(digest(value));
        expect(digest(JSON.parse(canonical(value)))).toBe(digest(value));
      }),
    );
  });

  test('refuses what JSON would lose', () => {
    for (const value of [NaN, Infinity, [undefined], { f: () => 1 }, 1n])
      expect(() => canonical(value)).toThrow(TypeError);
  });
});

describe('folder store', () => {
  test('has an id that is made once, whoever asks at the same moment, and that moves with it', async () => {
    const folder = join(root, 'store');
    const program = `source('open-store.ts').openFolderStore(process.argv[1]).id().then((id) => process.stdout.write(id));`;
    const asked = Array.from({ length: 4 }, () => text(run(program, folder).stdout));
    const here = Array.from({ length: 8 }, () => openFolderStore(folder).id());
    const ids = new Set(await Promise.all([...asked, ...here]));
    const [id] = ids;
    expect([...ids]).toEqual([expect.stringMatching(/^[0-9a-f]{12}$/)]);
    cpSync(folder, join(root, 'moved'), { recursive: true });
    expect(await openFolderStore(join(root, 'moved')).id()).toBe(id);
    expect(await openFolderStore(join(root, 'another')).id()).not.toBe(id);
    writeFileSync(join(folder, 'format'), '2');
    await expect(openFolderStore(folder).id()).rejects.toMatchObject({ type: 'BadInput' });
    writeFileSync(join(folder, 'format'), '4\n');
    writeFileSync(join(folder, 'id'), '');
    await expect(openFolderStore(folder).id()).rejects.toThrow(
      /campaign-test-\w+\/store\/id does not hold the id of a store; write it/,
    );
  });
});

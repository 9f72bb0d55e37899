import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { canonical, digest, sha256 } from '../../../src/artifacts/hash';
import { openJournal } from '../../../src/artifacts/journal';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let root: string;
eachTemporaryFolder((folder) => (root = folder));
/** A Node that runs this program, for which `source(name)` is a file of src/artifacts. */
const run = (program: string, ...args: string[]) => {
  const hook = resolve(__dirname, '../../support/register.cjs');
  const source = `const source = (name) => require(${JSON.stringify(resolve(__dirname, '../../../src/artifacts'))} + '/' + name);`;
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
    writeFileSync(join(folder, 'format'), '3\n');
    writeFileSync(join(folder, 'id'), '');
    await expect(openFolderStore(folder).id()).rejects.toThrow(
      /campaign-test-\w+\/store\/id does not hold the id of a store; write it/,
    );
  });
});

describe('journal', () => {
  test('is read on from where it was read to, and from its beginning where it is another one', async () => {
    const store = openFolderStore(root);
    const path = join(root, 'journals', `${sha256('batch')}.jsonl`);
    const appended = async (...keys: string[]) => {
      const journal = await openFolderStore(root).journal('batch');
      for (const key of keys) await journal.append(key, { key });
      await journal.close();
    };
    await appended('a');
    const first = (await store.records('batch')).get('a');
    await appended('b');
    const later = await store.records('batch');
    expect([...later.keys()]).toEqual(['a', 'b']);
    expect(later.get('a')).toBe(first);
    const whole = readFileSync(path);
    writeFileSync(path, whole.subarray(0, -5));
    expect([...(await store.records('batch')).keys()]).toEqual(['a']);
    appendFileSync(path, whole.subarray(-5));
    expect([...(await store.records('batch')).keys()]).toEqual(['a', 'b']);
    rmSync(path);
    expect((await store.records('batch')).size).toBe(0);
    await appended('c', 'd', 'e');
    expect([...(await store.records('batch')).keys()]).toEqual(['c', 'd', 'e']);
  });

  test('passes over torn and damaged lines, wherever the tear is', async () => {
    const path = join(root, 'j.jsonl');
    const journal = await openJournal(path);
    for (const key of ['a', 'b', 'c']) await journal.append(key, { text: key.repeat(20) });
    await journal.close();
    const whole = readFileSync(path);
    const lastLine = whole.lastIndexOf('["');
    for (let length = lastLine + 1; length < whole.length - 1; length += 7) {
      writeFileSync(path, whole.subarray(0, length));
      const torn = await openJournal(path);
      expect([...torn.records().keys()]).toEqual(['a', 'b']);
      await torn.append('d', 'after the tear');
      await torn.close();
      const reopened = await openJournal(path);
      expect([...reopened.records().keys()]).toEqual(['a', 'b', 'd']);
      await reopened.close();
    }
    appendFileSync(path, '\n["0000000000000000","x",1]\n');
    const damaged = await openJournal(path);
    expect(damaged.records().has('x')).toBe(false);
    await damaged.close();
  });

  test('two journals on one file do not corrupt it', async () => {
    const path = join(root, 'j.jsonl');
    const journals = [await openJournal(path), await openJournal(path)];
    const record = 'x'.repeat(3000);
    await Promise.all(Array.from({ length: 400 }, (_, n) => journals[n % 2]!.append(`${n}`, { n, record })));
    await Promise.all(journals.map((journal) => journal.close()));
    const all = await openJournal(path);
    expect(all.records().size).toBe(400);
    for (const [key, value] of all.records()) expect(value).toEqual({ n: Number(key), record });
    await all.close();
  });

  test('what was acknowledged survives kill -9 of the process', async () => {
    const path = join(root, 'j.jsonl');
    const program = `
      source('journal.ts').openJournal(process.argv[1]).then((journal) => {
        for (let n = 0; n < 1e6; n++) setTimeout(() => journal.append(String(n), n).then(() => console.log(n)), n / 10);
      });`;
    const writer = run(program, path);
    let acknowledged = '';
    writer.stdout.on('data', (chunk: Buffer) => {
      acknowledged += chunk.toString();
      if (acknowledged.length > 2000) writer.kill('SIGKILL');
    });
    await once(writer, 'close');
    const journal = await openJournal(path);
    const seen = acknowledged.split('\n').slice(0, -1);
    expect(seen.length).toBeGreaterThan(100);
    for (const key of seen) expect(journal.records().get(key)).toBe(Number(key));
    await journal.close();
  });
});

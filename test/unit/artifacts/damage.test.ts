/** What is damaged in the store's folder is mended, made again, or an error that names the file: nothing else, and never silence. */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Checks } from '../../../src/artifacts/checks';
import { formatEntry, readEntry } from '../../../src/artifacts/entries';
import { openFolderStore } from '../../../src/artifacts/folder-store';
import { sha256 } from '../../../src/artifacts/hash';
import type { ArtifactStore } from '../../../src/artifacts/store';
import type { ArtifactRef } from '../../../src/domain/artifacts';

let root: string;
let store: ArtifactStore;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'damage-'));
  store = openFolderStore(root);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const text = (key: string, body: string) => ({ key, body, producer: 'maker', inputs: [], mediaType: 'text/plain' });
const objectAt = (sha: string) => join(root, 'objects', sha.slice(0, 2), sha);
const keyAt = (key: string) => join(root, 'keys', sha256(key).slice(0, 2), `${sha256(key)}.json`);
const provenanceAt = ({ sha256: sha }: ArtifactRef) => join(root, 'provenance', sha.slice(0, 2), `${sha}.json`);
/** What no failure may leave behind. */
const aside = () => readdirSync(join(root, 'aside'));

/** Changes the file in place, later than the file system's clock tick in which it was written. */
async function change(path: string, how: (path: string) => void): Promise<void> {
  await sleep(20);
  how(path);
}
const writable = (path: string): string => {
  chmodSync(path, 0o644);
  return path;
};
const damages: Record<string, (path: string) => void> = {
  'has a flipped bit': (path) => {
    const bytes = readFileSync(path);
    bytes[bytes.length >> 1]! ^= 1;
    writeFileSync(writable(path), bytes);
  },
  'is cut short': (path) => truncateSync(writable(path), statSync(path).size >> 1),
  'is empty': (path) => truncateSync(writable(path), 0),
  'is gone': (path) => rmSync(path),
};
const each = Object.entries(damages);

async function adapter(key = 'adapter'): Promise<ArtifactRef> {
  const folder = join(root, 'source');
  mkdirSync(join(folder, 'nested'), { recursive: true });
  writeFileSync(join(folder, 'config.json'), '{"rank":8}');
  writeFileSync(join(folder, 'nested', 'weights'), Buffer.alloc(100_000, 7));
  return store.putFolder({ key, producer: 'trainer', inputs: [], folder });
}
const weights = sha256(Buffer.alloc(100_000, 7));

describe('an object', () => {
  test.each(each)(
    'that %s is an error with its history; its key is forgotten, and it can be made again',
    async (_, damage) => {
      const ref = await store.put(text('batch/1', 'all the rollouts'));
      await change(objectAt(ref.sha256), damage);
      const failure = expect(store.read(ref)).rejects;
      await failure.toMatchObject({ type: 'ArtifactDamaged', retryable: false });
      for (const words of [ref.uri, objectAt(ref.sha256), "'maker'", "'batch/1'", 'campaign run'])
        await expect(store.read(ref)).rejects.toThrow(words);
      expect(await store.find('batch/1')).toBeUndefined();
      expect(existsSync(keyAt('batch/1'))).toBe(false);
      expect(await store.put(text('batch/1', 'all the rollouts'))).toEqual(ref);
      for (const anyone of [store, openFolderStore(root)]) {
        expect(await anyone.find('batch/1')).toEqual(ref);
        expect((await anyone.read(ref)).toString()).toBe('all the rollouts');
      }
      expect(aside()).toEqual([]);
    },
  );

  test.each(each)('that %s is put anew under any key', async (_, damage) => {
    const ref = await store.put(text('a', 'same'));
    await change(objectAt(ref.sha256), damage);
    expect(await store.put(text('b', 'same'))).toEqual(ref);
    expect((await store.read(ref)).toString()).toBe('same');
    expect(await store.find('a')).toEqual(ref);
  });

  test('what is made again may be something else', async () => {
    const ref = await store.put(text('k', 'one'));
    await change(objectAt(ref.sha256), damages['is cut short']!);
    const other = await store.put(text('k', 'two'));
    expect((await store.read(other)).toString()).toBe('two');
    expect(await store.find('k')).toEqual(other);
  });

  test('is read once a process by find, again after a change', async () => {
    const ref = await store.put(text('k', 'x'));
    await sleep(20);
    const reader = openFolderStore(root);
    const reads = jest.spyOn(fs, 'createReadStream');
    try {
      await Promise.all([reader.find('k'), reader.find('k')]);
      await reader.find('k');
      await store.find('k'); // wrote it itself
      expect(reads).toHaveBeenCalledTimes(1);
      chmodSync(objectAt(ref.sha256), 0o400);
      expect(await reader.find('k')).toEqual(ref);
      expect(reads).toHaveBeenCalledTimes(2);
    } finally {
      reads.mockRestore();
    }
  });

  test('that one process found damaged is read again by the others, though its size and content times look as before', async () => {
    const path = join(root, 'file');
    writeFileSync(path, 'x');
    await sleep(20);
    const [one, other] = [new Checks(), new Checks()];
    const test = jest.fn(() => Promise.resolve(true));
    expect(await other.holds(path, test)).toBe(true);
    await one.fail(path);
    await other.holds(path, test);
    expect(test).toHaveBeenCalledTimes(2);
  });
});

describe('a folder artifact', () => {
  test.each(each)('one of whose objects %s is mended from the materialised folder', async (_, damage) => {
    const ref = await adapter();
    await store.folder(ref);
    for (const sha of [weights, ref.sha256]) {
      await change(objectAt(sha), damage);
      expect(await openFolderStore(root).find('adapter')).toEqual(ref);
      expect(sha256(readFileSync(objectAt(sha)))).toBe(sha);
      await change(objectAt(sha), damage);
      expect(sha256(await store.read({ ...ref, uri: `artifact:${sha}`, sha256: sha }))).toBe(sha);
    }
    // All at once, listing and files: the folder alone holds everything.
    rmSync(join(root, 'objects'), { recursive: true });
    expect(await store.find('adapter')).toEqual(ref);
    expect(aside()).toEqual([]);
  });

  test.each(each)('one of whose objects %s is forgotten where no other copy is, and put anew', async (_, damage) => {
    const ref = await adapter();
    for (const sha of [weights, ref.sha256]) {
      await change(objectAt(sha), damage);
      await expect(store.folder(ref)).rejects.toMatchObject({
        type: 'ArtifactDamaged',
        message: expect.stringMatching(`${ref.uri}.*'trainer'.*'adapter'.*${objectAt(sha)}`),
      });
      expect(existsSync(join(root, 'folders', ref.sha256))).toBe(false);
      expect(await store.find('adapter')).toBeUndefined();
      expect(await adapter()).toEqual(ref);
      expect(await openFolderStore(root).find('adapter')).toEqual(ref);
    }
    expect(readFileSync(join(await store.folder(ref), 'config.json'), 'utf8')).toBe('{"rank":8}');
    expect(aside()).toEqual([]);
  });

  const inFolder: [string, (folder: string) => void][] = [
    ...each.map(([name, damage]): [string, (folder: string) => void] => [
      `a file of which ${name}`,
      (folder) => damage(join(folder, 'nested', 'weights')),
    ]),
    ['that has one file more', (folder) => writeFileSync(join(folder, 'nested', 'more'), 'x')],
    ['that lacks a subfolder', (folder) => rmSync(join(folder, 'nested'), { recursive: true })],
    [
      'that has a link in a file’s place',
      (folder) => {
        rmSync(join(folder, 'config.json'));
        symlinkSync('nested/weights', join(folder, 'config.json'));
      },
    ],
    [
      'that has a folder in a file’s place',
      (folder) => {
        rmSync(join(folder, 'config.json'));
        mkdirSync(join(folder, 'config.json', 'deep'), { recursive: true });
      },
    ],
    [
      'that has a file in a folder’s place',
      (folder) => {
        rmSync(join(folder, 'nested'), { recursive: true });
        writeFileSync(join(folder, 'nested'), 'x');
      },
    ],
  ];
  test.each(inFolder)('materialised, %s, is mended from the objects', async (_, damage) => {
    const ref = await adapter();
    const folder = await store.folder(ref);
    const expectWhole = () => {
      expect(readdirSync(folder, { recursive: true }).sort()).toEqual(['config.json', 'nested', 'nested/weights']);
      expect(sha256(readFileSync(join(folder, 'nested', 'weights')))).toBe(weights);
      expect(readFileSync(join(folder, 'config.json'), 'utf8')).toBe('{"rank":8}');
      expect(statSync(join(folder, 'nested', 'weights')).mode & 0o222).toBe(0);
    };
    for (const anyone of [store, openFolderStore(root)]) {
      await change(join(folder, 'nested', 'weights'), () => damage(folder));
      await anyone.folder(ref);
      expectWhole();
    }
    expect(aside()).toEqual([]);
  });

  test('materialised and damaged with its object is an error; another folder that has the bytes mends both', async () => {
    const ref = await adapter();
    const folder = await store.folder(ref);
    const both = async () => {
      await change(join(folder, 'nested', 'weights'), damages['is cut short']!);
      await change(objectAt(weights), damages['has a flipped bit']!);
    };
    await both();
    await expect(store.folder(ref)).rejects.toMatchObject({ type: 'ArtifactDamaged' });
    expect(await store.find('adapter')).toBeUndefined();

    expect(await adapter()).toEqual(ref);
    const source = join(root, 'other');
    mkdirSync(source);
    writeFileSync(join(source, 'renamed'), Buffer.alloc(100_000, 7));
    await store.folder(await store.putFolder({ key: 'other', producer: 'p', inputs: [], folder: source }));
    await both();
    expect(sha256(readFileSync(join(await store.folder(ref), 'nested', 'weights')))).toBe(weights);
    expect(await store.find('adapter')).toEqual(ref);
    expect(aside()).toEqual([]);
  });

  test('a reference to what is no listing is told by its file', async () => {
    const ref = await store.put(text('k', 'no listing'));
    const wrong = { ...ref, uri: `artifact-tree:${ref.sha256}` };
    await expect(store.folder(wrong)).rejects.toThrow(`${objectAt(ref.sha256)} is not the listing`);
  });
});

describe('entries', () => {
  test('any changed or missing byte is noticed', async () => {
    const path = join(root, 'entry.json');
    const ref = { uri: 'artifact:a', sha256: 'a', bytes: 12, mediaType: 'text/plain' };
    const entry = { key: 'kéy', producer: 'p', inputs: [ref], ref };
    const whole = Buffer.from(formatEntry(entry));
    for (let at = 0; at < whole.length; at++) {
      const changed = Buffer.from(whole);
      changed[at]! ^= 1 << (at % 8);
      writeFileSync(path, changed);
      expect((await readEntry(path))?.entry).toBeUndefined();
      writeFileSync(path, whole.subarray(0, at));
      expect((await readEntry(path))?.entry).toBeUndefined();
    }
    writeFileSync(path, whole);
    expect((await readEntry(path))?.entry).toEqual(entry);
  });

  test.each(each)('a key file that %s counts as forgotten, and the key can be put again', async (_, damage) => {
    const ref = await store.put(text('k', 'one'));
    await change(keyAt('k'), damage);
    expect(await store.resolve('k')).toBeUndefined();
    expect(await store.find('k')).toBeUndefined();
    expect(existsSync(keyAt('k'))).toBe(false);
    expect(await store.put(text('k', 'one'))).toEqual(ref);
    await change(keyAt('k'), damage);
    expect(await store.put(text('k', 'one'))).toEqual(ref);
    expect(await openFolderStore(root).find('k')).toEqual(ref);
    expect(aside()).toEqual([]);
  });

  test.each(each)('provenance that %s is an error that names it, until its key is found or put', async (_, damage) => {
    const input = await store.put(text('in', 'input'));
    const made = { ...text('k', 'body'), inputs: [input] };
    const ref = await store.put(made);
    for (const heal of [() => store.find('k'), () => store.put(made), () => store.put({ ...made, key: 'again' })]) {
      await change(provenanceAt(ref), damage);
      await expect(store.provenance(ref)).rejects.toMatchObject({
        type: 'ArtifactDamaged',
        message: expect.stringContaining(provenanceAt(ref)),
      });
      if (existsSync(provenanceAt(ref)))
        await expect(store.resolve(ref.sha256.slice(0, 12))).rejects.toThrow(provenanceAt(ref));
      expect(await heal()).toEqual(ref);
      expect((await store.provenance(ref)).inputs).toEqual([input]);
    }
    expect(aside()).toEqual([]);
  });
});

test.each(each.slice(0, 3))(
  'a journal line that %s is passed over, and its record can be appended again',
  async (name) => {
    const path = join(root, 'journals', `${sha256('j')}.jsonl`);
    const journal = await store.journal('j');
    for (const key of ['a', 'b', 'c']) await journal.append(key, key.repeat(30));
    await journal.close();
    const lines = readFileSync(path, 'utf8').split('\n');
    const line = lines.findIndex((one) => one.includes('"b"'));
    if (name === 'has a flipped bit') lines[line] = lines[line]!.replace('bbb', 'bcb');
    if (name === 'is cut short') lines[line] = lines[line]!.slice(0, 40);
    if (name === 'is empty') lines[line] = '';
    writeFileSync(path, lines.join('\n'));
    const again = await store.journal('j');
    expect([...again.records().keys()]).toEqual(['a', 'c']);
    await again.append('b', 'anew');
    await again.close();
    const whole = await store.journal('j');
    expect(whole.records().get('b')).toBe('anew');
    await whole.close();
  },
);

describe('at once', () => {
  test('stores that find the same damage all come to the same whole artifact', async () => {
    const ref = await adapter();
    const file = await store.put(text('file', 'body'));
    for (const [round, [, damage]] of [...each, ...each].entries()) {
      if (round % 2 === 0) await store.folder(ref);
      else rmSync(join(root, 'folders'), { recursive: true });
      for (const path of [objectAt(weights), objectAt(file.sha256), keyAt('adapter'), provenanceAt(file)])
        if (round % 3 > 0 || path !== keyAt('adapter')) await change(path, damage);
      const stores = [store, ...Array.from({ length: 4 }, () => openFolderStore(root))];
      await Promise.all(
        stores.map(async (one) => {
          expect(await one.put(text('file', 'body'))).toEqual(file);
          expect((await one.read(file)).toString()).toBe('body');
          expect(
            await one.putFolder({ key: 'adapter', producer: 'trainer', inputs: [], folder: join(root, 'source') }),
          ).toEqual(ref);
          expect(sha256(readFileSync(join(await one.folder(ref), 'nested', 'weights')))).toBe(weights);
        }),
      );
      for (const one of stores) expect(await one.find('file')).toEqual(file);
      expect(aside()).toEqual([]);
    }
  }, 30_000);

  test('processes, too', async () => {
    const ref = await adapter();
    const file = await store.put(text('file', 'body'));
    const folder = await store.folder(ref);
    await change(objectAt(file.sha256), damages['has a flipped bit']!);
    await change(join(folder, 'config.json'), damages['is cut short']!);
    await change(objectAt(weights), damages['is gone']!);
    const script = join(root, 'heal.js');
    const source = JSON.stringify(join(__dirname, '../../..', 'src', 'artifacts', 'folder-store.ts'));
    writeFileSync(
      script,
      `const store = require(${source}).openFolderStore(${JSON.stringify(root)});
       const [ref, begin] = [${JSON.stringify(ref)}, Number(process.argv[2])];
       setTimeout(async () => {
         const file = await store.put(${JSON.stringify(text('file', 'body'))});
         await store.folder(ref);
         const found = await store.find('adapter');
         console.log(JSON.stringify([file, found, (await store.read(file)).toString()]));
       }, begin - Date.now());`,
    );
    const hook = join(__dirname, '../..', 'support', 'register.cjs');
    const begin = String(Date.now() + 5000);
    const said = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const healer = spawn(process.execPath, ['-r', hook, script, begin], { stdio: ['ignore', 'pipe', 'inherit'] });
        let output = '';
        healer.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
        await new Promise((resolve) => healer.on('close', resolve));
        return JSON.parse(output) as unknown;
      }),
    );
    for (const one of said) expect(one).toEqual([file, ref, 'body']);
    expect(readFileSync(join(folder, 'config.json'), 'utf8')).toBe('{"rank":8}');
    expect(aside()).toEqual([]);
  }, 30_000);

  test('a key that was put anew stays, though another store forgets the damaged one it has read', async () => {
    const ref = await store.put(text('k', 'one'));
    await change(keyAt('k'), (path) => appendFileSync(path, '!'));
    const slow = openFolderStore(root);
    const open = jest.spyOn(fs.promises, 'rename');
    let anew: Promise<ArtifactRef> | undefined;
    open.mockImplementationOnce(async (from, to) => {
      open.mockRestore();
      // Between its reading and its removing, the other one has removed it and put it again.
      anew = store.put(text('k', 'one'));
      await anew;
      await fs.promises.rename(from, to);
    });
    expect(await slow.find('k')).toBeUndefined();
    expect(await anew).toEqual(ref);
    expect(await slow.find('k')).toEqual(ref);
    expect(readdirSync(dirname(keyAt('k')))).toHaveLength(1);
  });
});

/** Merged adapters as artifacts, and how programs of the Python package end, with others in the place of Python (test/contract/policy-server.test.ts has the real one). */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactStore } from '../../../src/store/store';
import type { FailureType } from '../../../src/domain/failures';
import { createMerger, type Part } from '../../../src/policy/merge';
import { runPython } from '../../../src/policy/python';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let root: string;
let store: ArtifactStore;
let x: Part;
let y: Part;
let temporary: string | undefined;

eachTemporaryFolder((folder) => (root = folder));
beforeEach(async () => {
  store = openFolderStore(join(root, 'store'));
  [x, y] = [await adapter('x'), await adapter('y')];
  temporary = process.env['TMPDIR'];
  process.env['TMPDIR'] = join(root, 'tmp');
  mkdirSync(process.env['TMPDIR']);
});
afterEach(() => {
  if (temporary === undefined) delete process.env['TMPDIR'];
  else process.env['TMPDIR'] = temporary;
});

async function adapter(name: string): Promise<Part> {
  const folder = join(root, name);
  mkdirSync(folder);
  writeFileSync(join(folder, 'adapter_config.json'), name);
  return { ref: await store.putFolder({ key: name, producer: 'test', inputs: [], folder }), weight: 1 };
}

/** A program that runs `body` with `job` and `write(text)`; each run leaves a line in the file `runs`. */
function program(body: string): string {
  const path = join(root, 'python');
  writeFileSync(
    path,
    `#!${process.execPath}
const { appendFileSync, mkdirSync, readFileSync, writeFileSync } = require('node:fs');
appendFileSync(${JSON.stringify(join(root, 'runs'))}, process.argv.slice(2, -3).join(' ') + '\\n');
const job = JSON.parse(readFileSync(process.argv.at(-3), 'utf8'));
writeFileSync(process.argv.at(-1), '{}');
const write = (text) => {
  mkdirSync(job.output_dir);
  writeFileSync(job.output_dir + '/adapter_config.json', text);
};
${body}
`,
  );
  chmodSync(path, 0o755);
  return path;
}
const runs = () => readFileSync(join(root, 'runs'), 'utf8').trim().split('\n');
const adding = `write(job.adapters.map(({ path, weight }) => weight + readFileSync(path + '/adapter_config.json', 'utf8')).join('+'));`;

test('parts are merged once, in whatever order and by however many they are asked for', async () => {
  const python = program(adding);
  const merge = createMerger({ store, python });
  const parts = [
    { ...x, weight: 0.5 },
    { ...y, weight: 2 },
  ];
  const [first, ...others] = await Promise.all([
    merge(parts),
    merge(parts.toReversed()),
    merge([...parts, { ...x, weight: 0 }]),
  ]);
  for (const other of others) expect(other).toEqual(first);
  expect(await createMerger({ store, python })(parts)).toEqual(first);
  expect(runs()).toEqual(['-m trainer merge --in']);

  const text = readFileSync(join(await store.folder(first!), 'adapter_config.json'), 'utf8');
  expect(text.split('+').sort()).toEqual(['0.5x', '2y']);
  const { producer, inputs, key } = await store.provenance(first!);
  expect(producer).toBe('merge');
  expect(key).toMatch(/^merge\/[0-9a-f]{64}$/);
  expect(inputs.map(({ sha256 }) => sha256).sort()).toEqual([x.ref.sha256, y.ref.sha256].sort());
  expect(readdirSync(join(root, 'tmp'))).toEqual([]);

  expect(await merge([{ ...x, weight: 0.25 }, y])).not.toEqual(first);
});

test('a program that fails leaves nothing, and the next who asks tries again', async () => {
  const merge = createMerger({ store, python: program(`console.error('MemoryError'); process.exit(1)`) });
  await expect(merge([x, y])).rejects.toMatchObject({ type: 'PythonFailed' });
  expect(readdirSync(join(root, 'tmp'))).toEqual([]);
  program(adding);
  expect((await merge([x, y])).uri).toMatch(/^artifact-tree:/);
});

describe('a program of the Python package', () => {
  /** An interpreter that does this, whatever it is asked to run. */
  function python(lines: string): string {
    const path = join(mkdtempSync(join(root, 'bin-')), 'python');
    writeFileSync(path, `#!/bin/sh\n${lines}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  const missing = () => join(root, 'nowhere');
  const unreadable = () => {
    const path = python('exit 0');
    chmodSync(path, 0o644);
    return path;
  };
  test.each<[string, string | (() => string), FailureType, RegExp]>([
    ['no room', 'echo "OSError: [Errno 28] No space left on device: x" >&2; exit 1', 'DiskFull', /No space left/],
    ['a crash', 'echo "MemoryError" >&2; exit 1', 'PythonFailed', /fit-router ended with code 1: MemoryError$/],
    ['a kill', 'kill -9 $$', 'PythonFailed', /fit-router was killed by SIGKILL/],
    ['a refusal', 'echo "fit-router: tasks: too few" >&2; exit 3', 'BadInput', /^trainer fit-router: tasks: too few$/],
    ['a Python that is not there', missing, 'BadInput', /nowhere: .*; run make install$/],
    ['a Python that can’t be started now', unreadable, 'PythonFailed', /EACCES/],
  ])('%s is told as such', async (_, program, type, said) => {
    const path = typeof program === 'string' ? python(program) : program();
    const failure = runPython({ python: path, args: ['fit-router'] });
    await expect(failure).rejects.toMatchObject({ type, message: expect.stringMatching(said) as string });
  });
});

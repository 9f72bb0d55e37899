/** Programs of the Python package: what they tell is progress, and how they end is said in whose words. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runPython } from '../../../src/policy/python';

const folder = mkdtempSync(join(tmpdir(), 'python-program-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** An interpreter that does this, whatever it is asked to run. */
function python(lines: string): string {
  const path = join(mkdtempSync(join(folder, 'bin-')), 'python');
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, 0o755);
  return path;
}
const run = (lines: string, onProgress?: (done: number, total: number) => void) =>
  runPython({ python: python(lines), args: ['fit-router'], ...(onProgress && { onProgress }) });

test('what it tells on stdout is progress, between whatever else is printed there', async () => {
  const told: number[][] = [];
  await run(`echo '{"done":1,"total":2}'; echo a warning; echo '{"done":2,"total":2}'`, (...one) => told.push(one));
  expect(told).toEqual([
    [1, 2],
    [2, 2],
  ]);
});

test('one that works and prints nothing is left alone; one that stands still is killed', async () => {
  const limited = (lines: string) => runPython({ python: python(lines), args: ['merge'], idleSeconds: 2 });
  const working = limited(`end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do :; done`);
  // What it has started holds its pipes.
  await expect(limited('sleep 300 & exec sleep 300')).rejects.toMatchObject({
    type: 'PythonFailed',
    message: expect.stringMatching(/trainer merge used no processor time for \d s and was killed/) as string,
  });
  await working;
}, 60_000);

test.each([
  ['no room', 'echo "OSError: [Errno 28] No space left on device: x" >&2; exit 1', 'DiskFull'],
  ['a crash', 'echo "MemoryError" >&2; exit 1', 'PythonFailed'],
  ['a refusal', 'echo "fit-router: tasks: too few" >&2; exit 3', 'BadInput'],
])('%s', async (_, lines, type) => {
  await expect(run(lines)).rejects.toMatchObject({ type });
});

/** Programs of the Python package: what they tell is progress, and how they end is said in whose words. */
import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FailureType } from '../../../src/domain/failures';
import { runPython } from '../../../src/policy/python';
import { temporaryFolder } from '../../support/temporary-folder';

const folder = temporaryFolder();

/** An interpreter that does this, whatever it is asked to run. */
function python(lines: string): string {
  const path = join(mkdtempSync(join(folder, 'bin-')), 'python');
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, 0o755);
  return path;
}
test('what it tells on stdout is progress, between whatever else is printed there', async () => {
  const told: number[][] = [];
  const program = python(`echo '{"done":1,"total":2}'; echo a warning; echo '{"done":2,"total":2}'`);
  await runPython({ python: program, args: ['fit-router'], onProgress: (...one) => told.push(one) });
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

const missing = () => join(folder, 'nowhere');
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

/** The conformance checks: honest environments pass, and each violation is found. */
import { join } from 'node:path';
import type { Environment } from '../../../src/domain/environment';
import { checkEnvironment, type Finding } from '../../../src/environments/conformance';
import { openProcessEnvironment } from '../../../src/environments/process';
import { countingEnvironment } from '../../support/counting-environment';

const ledger = (violation: string) => async () =>
  openProcessEnvironment({
    command: [process.execPath, join(__dirname, '../../support/ledger.mjs'), violation],
    // What is not silent may take long to start on a busy machine.
    silenceMs: violation === 'silent' ? 3000 : 60_000,
  });

async function check(open: () => Promise<Environment>): Promise<{ findings: Finding[]; notes: Finding[] }> {
  const notes: Finding[] = [];
  const environment = await open();
  const findings = await checkEnvironment(environment, { again: open, onNote: (note) => notes.push(note) });
  await environment.close();
  return { findings, notes };
}

test('an honest environment passes, with nothing to note', async () => {
  expect(await check(ledger('none'))).toEqual({ findings: [], notes: [] });
});

test('a reward that is nearly 1 is noted', async () => {
  const { notes } = await check(async () => countingEnvironment({ reward: () => 0.9999 }));
  expect(notes.filter(({ check }) => check === 'evaluate')).toHaveLength(1);
});

const table: [violation: string, check: string][] = [
  ['malformed required', 'describe'],
  ['tool listed twice', 'describe'],
  ['empty policy', 'describe'],
  ['empty test split', 'tasks'],
  ['tasks differ between calls', 'tasks'],
  ['tasks differ between processes', 'tasks'],
  ['unknown task is begun', 'reset'],
  ['start depends on the clock', 'reset'],
  ['start depends on the process', 'reset'],
  ['maxSteps out of range', 'reset'],
  ['silent', 'reset'],
  ['shared state', 'step'],
  ['state shared without a word', 'evaluate'],
  ['state shared while open', 'step'],
  ['answers the first call only', 'step: 3 calls in one message'],
  ['answers a call that nobody made', 'step'],
  ['crashes on a missing field', 'step'],
  ['dies in a step', 'step'],
  ['write never succeeds', 'evaluate'],
  ['reference is missing', 'evaluate'],
  ['reference names no tool', 'evaluate'],
  ['reference does not fit the schema', 'evaluate'],
  ['reference does not score', 'evaluate'],
  ['reference fails in the test split', 'evaluate'],
  ['reference depends on the process', 'evaluate'],
  ['reward out of range', 'evaluate'],
  ['reward for doing nothing', 'evaluate'],
  ['reward depends on the process', 'evaluate'],
];

/** A third of them, and all in `make test-all`. */
const tried = process.env['TEST_ALL'] ? table : table.filter((_, n) => n % 3 === 0);

test.each(tried)('found: %s', async (violation, name) => {
  const { findings } = await check(ledger(violation));
  expect(findings.filter((finding) => finding.check.startsWith(name))).not.toEqual([]);
  expect(findings.length).toBeLessThan(5);
});

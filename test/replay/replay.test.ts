/** Recorded histories of every version still replay: a change of the workflows' commands fails here (docs/development.md). */
import { DeterminismViolationError } from '@temporalio/workflow';
import { Worker } from '@temporalio/worker';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { dataConverter, quiet, workflowBundle } from '../workflows/environment';

quiet();
const folder = join(__dirname, 'histories');
/** Version and workflow id. Child ids are derived from the workflow's own id, so replay needs it. */
const recorded = readdirSync(folder).flatMap((version) =>
  readdirSync(join(folder, version), { recursive: true, encoding: 'utf8' }).flatMap((file) =>
    file.endsWith('.json') ? [[version, file.slice(0, -'.json'.length)] as const] : [],
  ),
);
const read = (version: string, id: string): string => readFileSync(join(folder, version, `${id}.json`), 'utf8');
const replay = async (id: string, history: string): Promise<void> =>
  Worker.runReplayHistory({ workflowBundle: await workflowBundle(), dataConverter }, JSON.parse(history), id);

test.each(recorded)('version %s: %s replays', (version, id) => replay(id, read(version, id)));

test('a history of other steps than the workflow takes does not replay', async () => {
  const [version] = recorded.at(-1)!;
  const history = read(version, 'recorded');
  const other = history.replaceAll('"discover"', '"discoverElsewhere"');
  expect(other).not.toBe(history);
  await expect(replay('recorded', other)).rejects.toThrow(DeterminismViolationError);
});

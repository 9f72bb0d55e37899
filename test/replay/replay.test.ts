/** Recorded histories still replay: a workflow change that breaks running campaigns fails here, before it is deployed. */
import { DeterminismViolationError } from '@temporalio/workflow';
import { Worker } from '@temporalio/worker';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { quiet, workflowBundle } from '../workflows/environment';

jest.setTimeout(120_000);
quiet();
const folder = join(__dirname, 'histories');
const read = (file: string): string => readFileSync(join(folder, file), 'utf8');

test.each(readdirSync(folder))('%s replays', async (file) => {
  await Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, JSON.parse(read(file)), workflowIdOf(file));
});

test('a history of other steps than the workflow takes does not replay', async () => {
  const other = read('campaign.json').replaceAll('"discover"', '"discoverElsewhere"');
  expect(other).not.toBe(read('campaign.json'));
  const replay = Worker.runReplayHistory(
    { workflowBundle: await workflowBundle() },
    JSON.parse(other),
    workflowIdOf('campaign.json'),
  );
  await expect(replay).rejects.toThrow(DeterminismViolationError);
});

/** Child ids are derived from the workflow's own id, so replay needs it. */
function workflowIdOf(file: string): string {
  return (
    { 'campaign.json': 'recorded', 'capability.json': 'recorded/capability/tell_what_is_asked' }[file] ??
    'recorded/arm/grpo_target'
  );
}

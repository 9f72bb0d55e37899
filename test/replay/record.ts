/** Records the histories that replay.test.ts replays: `make record-histories`, after a deliberate change of the workflows. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils';
import { quiet, start, timeSkipping, withWorkers } from '../workflows/environment';
import { calibration, config, fakeActivities } from '../workflows/fake-activities';

async function main(): Promise<void> {
  quiet();
  const env = await timeSkipping();
  try {
    let calibrations = 0;
    const { activities } = fakeActivities({ calibrate: async () => calibration(++calibrations > 2) });
    await withWorkers(env, activities, async () => {
      const handle = await start(env, { campaign: config({ name: 'recorded', selection: { passes: 3, votes: 2 } }) });
      await handle.result();
      for (const [file, workflowId] of [
        ['campaign', 'recorded'],
        ['capability', 'recorded/capability/tell_what_is_asked'],
        ['arm', 'recorded/arm/grpo_target'],
      ] as const) {
        const history = await env.client.workflow.getHandle(workflowId).fetchHistory();
        await writeFile(join(__dirname, 'histories', `${file}.json`), `${historyToJSON(history)}\n`);
      }
    });
  } finally {
    await env.teardown();
  }
}

void main();

/** Steps that are cancelled or lose their worker, on the dev server, which decides what becomes of them. */
import { ApplicationFailure, Context, sleep } from '@temporalio/activity';
import { Worker } from '@temporalio/worker';
import { CancelledFailure as Cancelled, type WorkflowHandle } from '@temporalio/client';
import type { ApprovalRequest } from '../../src/workflows/messages';
import { latch, until } from './campaigns';
import { dataConverter, serverForTests, start, withWorkers, workflowBundle } from './environment';
import { type Activities, config, fakeActivities, selecting, TELL } from './fake-activities';

const env = serverForTests();
let n = 0;

/** A campaign of one capability. */
function held(replaced: (fakes: Activities) => Partial<Activities>, fields: object = {}) {
  const { activities, seen } = fakeActivities(selecting(TELL));
  Object.assign(activities, replaced({ ...activities }));
  const campaign = config({ name: `held-${n++}`, arms: [], ...fields });
  const child = env().client.workflow.getHandle(`${campaign.name}/capability/${TELL}`);
  const statuses = () => seen.record?.capabilities?.map(({ status }) => status);
  return { activities, seen, child, statuses, begin: () => start(env(), { campaign }) };
}
const outcomeOf = async (handle: WorkflowHandle) => {
  const { status, searchAttributes } = await handle.describe();
  return [status.name, searchAttributes['CampaignOutcome']];
};

test.each([
  ['confirms the cancellation', (error: unknown) => error],
  ['dies meanwhile', () => ApplicationFailure.create({ type: 'TrainerDied', message: 'killed' })],
])('a cancelled campaign and its child end as cancelled after a training that %s', async (_, ended) => {
  let hasSaved = false;
  const begun = latch();
  const { activities, seen, child, begin } = held(() => ({
    train: async () => {
      begun.open();
      for (;;) {
        Context.current().heartbeat({ kind: 'train', step: 1, steps: 4 });
        await sleep(50).catch(async (error: unknown) => {
          await new Promise((saved) => setTimeout(saved, 1000));
          hasSaved = true;
          throw ended(error);
        });
      }
    },
  }));
  await withWorkers(env(), activities, async () => {
    const handle = await begin();
    await begun.opened;
    await handle.cancel();
    await expect(handle.result()).rejects.toMatchObject({ cause: expect.any(Cancelled) as Cancelled });
    expect(hasSaved).toBe(true);
    expect(await outcomeOf(handle)).toEqual(['CANCELLED', ['cancelled']]);
    expect(await outcomeOf(child)).toEqual(['CANCELLED', ['cancelled']]);
  });
  expect(seen.record).toBeUndefined();
});

test('a worker that ends while a campaign waits for approval is nothing to the wait; another one goes on', async () => {
  const { activities, statuses, begin } = held(() => ({}), { approval: { capabilities: true } });
  const asked = (handle: WorkflowHandle) =>
    until(() => handle.query<ApprovalRequest | null>('approval').catch(() => null));
  const handle = await withWorkers(env(), activities, async () => {
    const started = await begin();
    await asked(started);
    return started;
  });
  // Nothing of the first worker is left: this one builds the workflow's state from its history.
  await withWorkers(env(), activities, async () => {
    expect((await asked(handle)).waiting.names).toEqual([TELL]);
    await handle.executeUpdate('decide', { args: [{ kind: 'approve' }] });
    await handle.result();
  });
  expect(statuses()).toEqual(['completed']);
  // And so does one that replays the whole, the decision too.
  const history = await handle.fetchHistory();
  const replayed = Worker.runReplayHistory(
    { workflowBundle: await workflowBundle(), dataConverter },
    history,
    handle.workflowId,
  );
  await expect(replayed).resolves.toBeUndefined();
});

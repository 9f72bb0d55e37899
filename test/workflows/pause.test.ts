/** Steps that are held up, on the dev server: what becomes of one that is told to stop, or whose worker ends, is the real server's decision. */
import { ApplicationFailure, CancelledFailure, Context, sleep } from '@temporalio/activity';
import { Worker } from '@temporalio/worker';
import { CancelledFailure as Cancelled, type WorkflowHandle } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { resolve } from 'node:path';
import type { Asked, CampaignProgress, ChildProgress } from '../../src/workflows/messages';
import { latch, until } from './campaigns';
import { bundled, devServer, quiet, start, withWorkers, workflowBundle } from './environment';
import { type Activities, config, failure, fakeActivities, selecting, TELL } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
let n = 0;
beforeAll(async () => {
  env = await devServer();
});
afterAll(() => env?.teardown());

/** A campaign of one capability. */
function held(replaced: (fakes: Activities) => Partial<Activities>, fields: object = {}) {
  const { activities, seen } = fakeActivities(selecting(TELL));
  Object.assign(activities, replaced({ ...activities }));
  const campaign = config({ name: `held-${n++}`, arms: [], ...fields });
  const child = env.client.workflow.getHandle(`${campaign.name}/capability/${TELL}`);
  const progress = () => child.query<ChildProgress>('progress');
  const statuses = () => seen.record?.capabilities?.map(({ status }) => status);
  return { activities, seen, child, progress, statuses, begin: () => start(env, { campaign }) };
}
const progressOf = (handle: WorkflowHandle) => handle.query<CampaignProgress>('progress');

test.each([
  ['says that it is cancelled', (error: unknown) => error],
  ['dies meanwhile', () => ApplicationFailure.create({ type: 'TrainerDied', message: 'killed' })],
])('pause holds the next step and takes back a running training; one that %s goes on with resume', async (_, ended) => {
  let trainings = 0;
  const begun = latch();
  const { activities, seen, progress, statuses, begin } = held(({ train }) => ({
    train: async (input) => {
      if (++trainings > 1) return train(input);
      begun.open();
      for (;;) {
        Context.current().heartbeat({ kind: 'train', step: 1, steps: 4 });
        await sleep(50).catch((error: unknown) => {
          throw error instanceof CancelledFailure ? ended(error) : new Error('not cancelled');
        });
      }
    },
  }));
  await withWorkers(env, activities, async () => {
    const handle = await begin();
    await begun.opened;
    await handle.signal('pause');
    await until(async () => (await progress()).paused);
    expect(await progressOf(handle)).toMatchObject({ paused: true });
    expect(seen.record).toBeUndefined();
    await handle.signal('resume');
    await handle.result();
  });
  expect([trainings, statuses()]).toEqual([2, ['trained']]);
});

test('a pause in the moment in which a child is started reaches it', async () => {
  const { activities, child, progress, statuses, begin } = held(() => ({}));
  const bundle = bundled([resolve(__dirname, '../fixtures/slow-start/interceptors.ts')]);
  const body = async () => {
    const handle = await begin();
    await until(async () => (await progressOf(handle)).children.length > 0);
    await handle.signal('pause');
    const runs = async () => (await child.describe()).status.name === 'RUNNING';
    await until(() => runs().catch(() => false));
    await until(async () => (await progress()).paused || !(await runs()));
    expect((await progress()).paused).toBe(true);
    await handle.signal('resume');
    await handle.result();
  };
  await withWorkers(env, activities, body, bundle);
  expect(statuses()).toEqual(['trained']);
});

describe('a step that waits to be tried again', () => {
  /** Its synthesis fails until it is told to succeed. */
  const failing = (onFirst: () => Promise<unknown>) => {
    const step = { calls: 0, mended: false };
    const campaign = held(({ synthesize }) => ({
      synthesize: async (input) => {
        if (++step.calls === 1) await onFirst();
        if (step.mended) return synthesize(input);
        throw failure('Unexpected', 'odd');
      },
    }));
    return { step, ...campaign };
  };

  test('begins no attempt while the campaign is paused', async () => {
    const { step, activities, progress, statuses, begin, child } = failing(() => child.signal('pause'));
    await withWorkers(env, activities, async () => {
      const running = await begin();
      await until(async () => step.calls > 0 && (await progress()).troubles?.length === 1);
      await new Promise((done) => setTimeout(done, 3000));
      expect(step.calls).toBe(1);
      expect(await progress()).toMatchObject({
        paused: true,
        troubles: [{ type: 'Unexpected', reason: 'odd', attempt: { number: 2, of: 14 } }],
      });
      step.mended = true;
      await child.signal('resume');
      await running.result();
    });
    expect([step.calls, statuses()]).toEqual([2, ['trained']]);
  });

  test('ends with the campaign that is cancelled', async () => {
    const { step, activities, seen, begin } = failing(async () => undefined);
    await withWorkers(env, activities, async () => {
      const running = await begin();
      await until(async () => step.calls >= 3);
      await running.cancel();
      await expect(running.result()).rejects.toMatchObject({ cause: expect.any(Cancelled) as Cancelled });
    });
    expect(seen.record).toBeUndefined();
  });
});

test('a step whose worker is silent is another step at once, and no attempt of it', async () => {
  const attempts: number[] = [];
  const replaced = ({ train }: Activities): Partial<Activities> => ({
    train: async (input) => {
      attempts.push(Context.current().info.attempt);
      return attempts.length === 1 ? Context.current().cancelled : train(input);
    },
  });
  const { activities, statuses, begin } = held(replaced, { workers: { heartbeatSeconds: 20 } });
  await withWorkers(env, activities, async () => (await begin()).result());
  expect([attempts, statuses()]).toEqual([[1, 1], ['trained']]);
});

test('a worker that ends while a campaign waits for approval is nothing to the wait; another one goes on', async () => {
  const { activities, statuses, begin } = held(() => ({}), { approval: { capabilities: true } });
  const asked = (handle: WorkflowHandle) => until(() => handle.query<Asked | null>('approval').catch(() => null));
  const handle = await withWorkers(env, activities, async () => {
    const started = await begin();
    await asked(started);
    return started;
  });
  // Nothing of the first worker is left: this one builds the workflow's state from its history.
  await withWorkers(env, activities, async () => {
    expect((await asked(handle)).waiting.names).toEqual([TELL]);
    await handle.executeUpdate('decide', { args: [{ kind: 'approve' }] });
    await handle.result();
  });
  expect(statuses()).toEqual(['trained']);
  // And so does one that replays the whole, the decision too.
  const history = await handle.fetchHistory();
  const replayed = Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, history, handle.workflowId);
  await expect(replayed).resolves.toBeUndefined();
});

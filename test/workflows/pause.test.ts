/** Pause and resume on the dev server: what becomes of a step that is told to stop is the real server's decision. */
import { ApplicationFailure, CancelledFailure, Context, sleep } from '@temporalio/activity';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { CampaignProgress, ChildProgress } from '../../src/workflows/messages';
import { devServer, quiet, start, withWorkers } from './environment';
import { artifact, config, fakeActivities } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
let n = 0;

beforeAll(async () => {
  env = await devServer();
});
afterAll(() => env?.teardown());

test.each([
  ['says that it is cancelled', (error: unknown) => error],
  ['dies meanwhile', () => ApplicationFailure.create({ type: 'TrainerDied', message: 'killed' })],
])('pause holds the next step and takes back a running training; one that %s goes on with resume', async (_, ended) => {
  let trainings = 0;
  const { activities, seen } = fakeActivities();
  const train = activities.train;
  let release: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => (release = resolve));
  activities.train = async (input) => {
    if (++trainings > 1) return train(input);
    release();
    for (;;) {
      Context.current().heartbeat({ kind: 'train', step: 1, steps: 4 });
      await sleep(50).catch((error: unknown) => {
        throw error instanceof CancelledFailure ? ended(error) : new Error('not cancelled');
      });
    }
  };
  const candidate = { name: 'tell_what_is_asked', definition: 'x', examples: [] };
  activities.select = async () => ({ ref: artifact('s'), selected: [{ candidate, votes: 10 }] });
  const campaign = config({ name: `paused-${n++}`, arms: [] });
  await withWorkers(env, activities, async () => {
    const handle = await start(env, { campaign });
    const child = env.client.workflow.getHandle(`${campaign.name}/capability/${candidate.name}`);
    await begun;
    await handle.signal('pause');
    for (;;) {
      const progress = await child.query<ChildProgress>('progress');
      if (progress.paused) break;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(await handle.query<CampaignProgress>('progress')).toMatchObject({ paused: true });
    expect(seen.record).toBeUndefined();
    await handle.signal('resume');
    await handle.result();
  });
  expect(trainings).toBe(2);
  expect(seen.record?.capabilities?.[0]?.status).toBe('trained');
});

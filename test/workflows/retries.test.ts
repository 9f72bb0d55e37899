/** What is tried again, how long, and who is told: under time skipping, so that an outage of hours takes seconds. */
import { defineSearchAttributeKey } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { ArtifactStore } from '../../src/artifacts/store';
import { mapped } from '../../src/activities/failures';
import { ROUND, OutsideFailure, type FailureType } from '../../src/domain/failures';
import { searchAttributeNames } from '../../src/workflows/messages';
import { quiet, start, STORE, timeSkipping, withWorkers } from './environment';
import { artifact, config, fakeActivities, type Activities, type Seen } from './fake-activities';

jest.setTimeout(300_000);
quiet();
let env: TestWorkflowEnvironment;
let n = 0;
// Silent for hours of skipped time: nobody is to take that for a loss.
const workers = { heartbeatSeconds: 100_000, stallSeconds: 100_000 };
const named = () => config({ name: `retried-${n++}`, arms: [], workers });
const MINUTE = 60_000;

beforeAll(async () => {
  env = await timeSkipping();
});
afterAll(() => env?.teardown());

const one = {
  ref: artifact('s'),
  selected: [{ candidate: { name: 'tell', definition: 'x', examples: [] }, votes: 10 }],
};

/** As a worker runs them: what they throw goes through the one mapping. `change` is given those that succeed. */
function activitiesWith(change: (all: Activities) => Partial<Activities>): { activities: Activities; seen: Seen } {
  const { activities, seen } = fakeActivities({ select: async () => one });
  Object.assign(activities, change({ ...activities }));
  return { activities: mapped(activities, { home: '', store: { id: async () => STORE } as ArtifactStore }), seen };
}

const attentionOf = async (workflowId: string) => {
  const { typedSearchAttributes } = await env.client.workflow.getHandle(workflowId).describe();
  return typedSearchAttributes.get(defineSearchAttributeKey(searchAttributeNames.attention, 'KEYWORD'));
};

test('a policy server that is away for three hours drops nothing: the campaign asks for attention and ends with the adapter', async () => {
  const campaign = named();
  let gone: number | undefined;
  const asked: { minutes: number; attention: (string | undefined)[] }[] = [];
  const { activities, seen } = activitiesWith(({ rollOut }) => ({
    rollOut: async (input) => {
      if (!input.title.startsWith('tell: held out at step')) return rollOut(input);
      const now = await env.currentTimeMs();
      gone ??= now;
      const names = [campaign.name, `${campaign.name}/capability/tell`];
      asked.push({ minutes: (now - gone) / MINUTE, attention: await Promise.all(names.map(attentionOf)) });
      if (now - gone > 180 * MINUTE) return rollOut(input);
      throw new OutsideFailure('PolicyServerUnavailable', 'connect ECONNREFUSED');
    },
  }));
  await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
  expect(seen.record?.capabilities).toMatchObject([
    { name: 'tell', status: 'trained', trained: { best: { step: 2 } } },
  ]);
  expect(seen.record?.evaluation?.failed).toEqual([]);
  const away = asked.filter(({ minutes }) => minutes > 35);
  expect(away.length).toBeGreaterThan(10);
  expect(new Set(away.flatMap(({ attention }) => attention))).toEqual(new Set(['PolicyServerUnavailable']));
  const early = asked.filter(({ minutes }) => minutes < 25);
  expect(new Set(early.flatMap(({ attention }) => attention))).toEqual(new Set([undefined]));
  expect(await attentionOf(campaign.name)).toBeUndefined();
});

test('attention goes when a step goes on, though it takes long; and it is not paid for by steps that are preempted', async () => {
  const campaign = named();
  const seenAt: [hours: number, attention: string | undefined][] = [];
  let begun: number | undefined;
  const { activities } = activitiesWith(({ train }) => ({
    train: async (input) => {
      begun ??= await env.currentTimeMs();
      const hours = ((await env.currentTimeMs()) - begun) / (60 * MINUTE);
      if (hours < 2) throw new OutsideFailure('DiskFull', 'no room');
      // It runs for hours now, and is preempted once.
      for (let hour = 0; hour < 3; hour++) {
        seenAt.push([hour, await attentionOf(campaign.name)]);
        await env.sleep('1 hour');
      }
      if (hours < 4) throw new OutsideFailure('WorkerShutdown', 'the worker is shutting down');
      return train(input);
    },
  }));
  await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
  expect(seenAt).toEqual([0, 1, 2, 0, 1, 2].map((hour, i) => [hour, i === 0 ? 'DiskFull' : undefined]));
});

test.each<[FailureType, number]>([
  ['TrainerDied', ROUND],
  ['Unexpected', ROUND],
  ['BadJob', 1],
])(
  '%s is the training’s own: after %d attempts it is a row, whatever was outside or preempted meanwhile',
  async (type, attempts) => {
    const thrown: string[] = [];
    const { activities, seen } = activitiesWith(() => ({
      train: async () => {
        const others: FailureType[] = ['PolicyServerUnavailable', 'WorkerShutdown', 'WorkerDied'];
        const next = others[thrown.length] ?? type;
        thrown.push(next);
        if (next === 'Unexpected') throw new Error('it broke');
        throw new OutsideFailure(next, 'it broke');
      },
    }));
    await withWorkers(env, activities, async () => (await start(env, { campaign: named() })).result());
    expect(thrown.filter((one) => one === type)).toHaveLength(attempts);
    expect(seen.record?.capabilities).toMatchObject([{ status: 'failed', reason: `${type}: it broke` }]);
  },
);

test('a hundred preemptions do not end a step; each is tried again within about a second', async () => {
  let last: number | undefined;
  const waited: number[] = [];
  const { activities, seen } = activitiesWith(({ train }) => ({
    train: async (input) => {
      const now = await env.currentTimeMs();
      if (last !== undefined) waited.push((now - last) / 1000);
      if (waited.length === 100) return train(input);
      await env.sleep('20 minutes');
      last = await env.currentTimeMs();
      throw new OutsideFailure(waited.length % 2 === 0 ? 'WorkerShutdown' : 'WorkerDied', 'gone');
    },
  }));
  await withWorkers(env, activities, async () => (await start(env, { campaign: named() })).result());
  expect(seen.record?.capabilities).toMatchObject([{ status: 'trained' }]);
  expect(waited.filter((seconds) => seconds > 3)).toEqual([]);
});

test('a worker that dies of a step as soon as it has it is tried more slowly in the end, and asks for attention', async () => {
  const campaign = named();
  const at: number[] = [];
  const attention: (string | undefined)[] = [];
  const { activities } = activitiesWith(({ train }) => ({
    train: async (input) => {
      at.push(await env.currentTimeMs());
      attention.push(await attentionOf(campaign.name));
      if (at.length > 60) return train(input);
      throw new OutsideFailure('WorkerDied', 'killed');
    },
  }));
  await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
  expect(at[60]! - at[59]!).toBeGreaterThan(50_000);
  expect([attention[20], attention.at(-1)]).toEqual([undefined, 'WorkerDied']);
});

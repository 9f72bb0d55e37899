/** What is tried again, how long, and who is told: under time skipping, so that an outage of hours takes seconds. */
import { defineSearchAttributeKey } from '@temporalio/common';
import type { ArtifactStore } from '../../src/artifacts/store';
import { mapped } from '../../src/activities/failures';
import { ROUND, OutsideFailure, type FailureType } from '../../src/domain/failures';
import { searchAttributeNames } from '../../src/workflows/messages';
import { campaignsOn } from './campaigns';
import { STORE, timeSkipping } from './environment';
import { type Activities, selecting } from './fake-activities';

jest.setTimeout(300_000);
const campaigns = campaignsOn(timeSkipping, 'retried');
const { env } = campaigns;
// Silent for hours of skipped time: nobody is to take that for a loss.
const workers = { heartbeatSeconds: 100_000, stallSeconds: 100_000 };
const MINUTE = 60_000;
const now = () => env().currentTimeMs();

/** A campaign of one capability, with activities as a worker runs them: what they throw goes through the one mapping. */
const play = (change: (fakes: Activities) => Partial<Activities>) =>
  campaigns.play({ workers }, (fakes) => {
    const changed = { ...fakes, ...selecting('tell'), ...change(fakes) };
    return mapped(changed, { home: '', store: { id: async () => STORE } as ArtifactStore });
  });

const attentionOf = async (workflowId: string) => {
  const { typedSearchAttributes } = await env().client.workflow.getHandle(workflowId).describe();
  return typedSearchAttributes.get(defineSearchAttributeKey(searchAttributeNames.attention, 'KEYWORD'));
};

test('a policy server that is away for three hours drops nothing: the campaign asks for attention and ends with the adapter', async () => {
  let gone: number | undefined;
  const asked: { minutes: number; attention: (string | undefined)[] }[] = [];
  const { record, campaign } = await play(({ rollOut }) => ({
    rollOut: async (input) => {
      if (!input.title.startsWith('tell: held out at step')) return rollOut(input);
      const at = await now();
      gone ??= at;
      const names = [input.campaign, `${input.campaign}/capability/tell`];
      const minutes = (at - gone) / MINUTE;
      asked.push({ minutes, attention: await Promise.all(names.map(attentionOf)) });
      if (minutes > 180) return rollOut(input);
      throw new OutsideFailure('PolicyServerUnavailable', 'connect ECONNREFUSED');
    },
  }));
  expect(record.capabilities).toMatchObject([{ name: 'tell', status: 'trained', trained: { best: { step: 2 } } }]);
  expect(record.evaluation?.failed).toEqual([]);
  const away = asked.filter(({ minutes }) => minutes > 35);
  expect(away.length).toBeGreaterThan(10);
  expect(new Set(away.flatMap(({ attention }) => attention))).toEqual(new Set(['PolicyServerUnavailable']));
  const early = asked.filter(({ minutes }) => minutes < 25);
  expect(new Set(early.flatMap(({ attention }) => attention))).toEqual(new Set([undefined]));
  expect(await attentionOf(campaign.name)).toBeUndefined();
});

test('attention goes when a step goes on, though it takes long; and it is not paid for by steps that are preempted', async () => {
  const seenAt: [hours: number, attention: string | undefined][] = [];
  let begun: number | undefined;
  await play(({ train }) => ({
    train: async (input) => {
      begun ??= await now();
      const hours = ((await now()) - begun) / (60 * MINUTE);
      if (hours < 2) throw new OutsideFailure('DiskFull', 'no room');
      // It runs for hours now, and is preempted once.
      for (let hour = 0; hour < 3; hour++) {
        seenAt.push([hour, await attentionOf(input.campaign)]);
        await env().sleep('1 hour');
      }
      if (hours < 4) throw new OutsideFailure('WorkerShutdown', 'the worker is shutting down');
      return train(input);
    },
  }));
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
    const { record } = await play(() => ({
      train: async () => {
        const others: FailureType[] = ['PolicyServerUnavailable', 'WorkerShutdown', 'WorkerDied'];
        const next = others[thrown.length] ?? type;
        thrown.push(next);
        if (next === 'Unexpected') throw new Error('it broke');
        throw new OutsideFailure(next, 'it broke');
      },
    }));
    expect(thrown.filter((one) => one === type)).toHaveLength(attempts);
    expect(record.capabilities).toMatchObject([{ status: 'failed', reason: `${type}: it broke` }]);
  },
);

test('a hundred preemptions do not end a step; each is tried again within about a second', async () => {
  let last: number | undefined;
  const waited: number[] = [];
  const { record } = await play(({ train }) => ({
    train: async (input) => {
      if (last !== undefined) waited.push(((await now()) - last) / 1000);
      if (waited.length === 100) return train(input);
      await env().sleep('20 minutes');
      last = await now();
      throw new OutsideFailure(waited.length % 2 === 0 ? 'WorkerShutdown' : 'WorkerDied', 'gone');
    },
  }));
  expect(record.capabilities).toMatchObject([{ status: 'trained' }]);
  expect(waited.filter((seconds) => seconds > 3)).toEqual([]);
});

test('a worker that dies of a step as soon as it has it is tried more slowly in the end, and asks for attention', async () => {
  const at: number[] = [];
  const attention: (string | undefined)[] = [];
  await play(({ train }) => ({
    train: async (input) => {
      at.push(await now());
      attention.push(await attentionOf(input.campaign));
      if (at.length > 60) return train(input);
      throw new OutsideFailure('WorkerDied', 'killed');
    },
  }));
  expect(at[60]! - at[59]!).toBeGreaterThan(50_000);
  expect([attention[20], attention.at(-1)]).toEqual([undefined, 'WorkerDied']);
});

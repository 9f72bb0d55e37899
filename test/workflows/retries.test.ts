/** When a step is tried again and when it ends, under time skipping: an outage of days takes seconds, the loss of a worker a real second. */
import { Context } from '@temporalio/activity';
import { temporal } from '@temporalio/proto';
import type { ArtifactStore } from '../../src/store/store';
import { mapped } from '../../src/activities/errors';
import { markProgress } from '../../src/activities/heartbeat';
import { type FailureType, MAX_FAULTS, OutsideFailure } from '../../src/domain/failures';
import { campaignsOn } from './campaigns';
import { STORE, timeSkipping } from './environment';
import { type Activities, REFUSE, selecting, TELL } from './fake-activities';

const campaigns = campaignsOn(timeSkipping, 'retried');
const { env } = campaigns;
const now = () => env().currentTimeMs();

/** A campaign with activities as a worker runs them. */
const play = (fields: Parameters<typeof campaigns.play>[0], change: (fakes: Activities) => Partial<Activities>) =>
  campaigns.play(fields, (fakes) => {
    const changed = { ...fakes, ...selecting(TELL), ...change(fakes) };
    return mapped(changed, { home: '', store: { id: async () => STORE } as ArtifactStore });
  });

/** Ends an attempt as Temporal sees the death of its worker: heartbeats stop, and what is said later comes too late. */
async function loseWorker(): Promise<never> {
  await new Promise((sent) => setTimeout(sent, 50));
  Object.assign(Context.current(), { heartbeat: () => undefined });
  await new Promise((late) => setTimeout(late, 1500));
  throw new Error('too late');
}

test('after 100 attempts in an outage and 6 lost workers with progress between them, all own faults are left', async () => {
  let [attempts, faults] = [0, 0];
  const { record } = await play({ heartbeatSeconds: 1 }, () => ({
    train: async () => {
      attempts++;
      if (attempts <= 100) throw new OutsideFailure('PolicyServerUnavailable', 'connect ECONNREFUSED');
      if (attempts <= 106) {
        markProgress();
        await loseWorker();
      }
      faults++;
      throw new OutsideFailure('TrainerDied', 'it broke');
    },
  }));
  expect(faults).toBe(MAX_FAULTS);
  expect(record.capabilities).toMatchObject([{ status: 'failed', reason: 'TrainerDied: it broke' }]);
});

test('a step that loses its worker in every start fails, and other steps go on', async () => {
  let starts = 0;
  const { record } = await play({ heartbeatSeconds: 1 }, ({ train }) => ({
    ...selecting(REFUSE, TELL),
    train: async (input) => {
      if (input.name !== REFUSE) return train(input);
      starts++;
      return loseWorker();
    },
  }));
  expect(starts).toBe(MAX_FAULTS);
  expect(record.capabilities).toMatchObject([
    { name: REFUSE, status: 'failed', reason: expect.stringMatching(/^WorkerDied: /) as string },
    { name: TELL, status: 'completed' },
  ]);
});

test.each<[FailureType, number]>([
  ['TrainerDied', MAX_FAULTS],
  ['Unexpected', MAX_FAULTS],
  ['BadJob', 1],
])('a training fails for good with %s after %d attempts', async (type, attempts) => {
  let thrown = 0;
  const { record } = await play({}, () => ({
    train: async () => {
      thrown++;
      if (type === 'Unexpected') throw new Error('it broke');
      throw new OutsideFailure(type, 'it broke');
    },
  }));
  expect(thrown).toBe(attempts);
  expect(record.capabilities).toMatchObject([{ status: 'failed', reason: `${type}: it broke` }]);
});

test('a hundred preemptions do not end a step; each is tried again within about a second', async () => {
  let last: number | undefined;
  const waited: number[] = [];
  const { record } = await play({ heartbeatSeconds: 100_000 }, ({ train }) => ({
    train: async (input) => {
      if (last !== undefined) waited.push(((await now()) - last) / 1000);
      if (waited.length === 100) return train(input);
      await env().sleep('20 minutes');
      last = await now();
      throw new OutsideFailure('WorkerShutdown', 'gone');
    },
  }));
  expect(record.capabilities).toMatchObject([{ status: 'completed' }]);
  expect(waited.filter((seconds) => seconds > 3)).toEqual([]);
});

test('the delay that a service asks for is kept', async () => {
  const at: number[] = [];
  await play({}, ({ synthesize }) => ({
    synthesize: async (input) => {
      if (at.push(await now()) > 1) return synthesize(input);
      throw new OutsideFailure('LanguageModelUnavailable', 'busy', undefined, 7_200_000);
    },
  }));
  expect(at[1]! - at[0]!).toBeGreaterThanOrEqual(7_200_000);
});

const { EventType } = temporal.api.enums.v1;
const TASKS: (string | number | null | undefined)[] = [
  EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED,
  EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED,
  EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
];

const type: FailureType = 'StoreUnavailable';
const steps: (keyof Activities)[] = ['rollOut', 'findGains', 'label'];

describe('while a service is away', () => {
  /** Returns how many events there are, but for tasks of workflows, which may be joined, and when work went on. */
  async function outage(o: { hours: number; parallel: number; heartbeatSeconds: number }) {
    let gone: number | undefined;
    let resumed = 0;
    const fields = {
      heartbeatSeconds: o.heartbeatSeconds,
      training: { checkpointEvery: 1, steps: o.parallel },
      selection: { passes: o.parallel, votes: 2 },
    };
    const { campaign, record } = await play(fields, (fakes) =>
      Object.fromEntries(
        steps.map((name) => [
          name,
          async (input: never) => {
            const at = await now();
            gone ??= at;
            if (at - gone < o.hours * 3_600_000) throw new OutsideFailure(type, 'connect ECONNREFUSED');
            resumed ||= at - gone;
            return (fakes[name] as (given: never) => Promise<unknown>)(input);
          },
        ]),
      ),
    );
    expect(record.capabilities).toMatchObject([{ status: 'completed' }]);
    const histories = [campaign.name, `${campaign.name}/capability/${TELL}`].map((id) =>
      env().client.workflow.getHandle(id).fetchHistory(),
    );
    const events = (await Promise.all(histories)).flatMap((history) => history.events ?? []);
    return { events: events.filter(({ eventType }) => !TASKS.includes(eventType)).length, resumed };
  }

  test('histories do not grow, for days', async () => {
    const [short, long] = [
      await outage({ hours: 1, parallel: 4, heartbeatSeconds: 300 }),
      await outage({ hours: 48, parallel: 4, heartbeatSeconds: 300 }),
    ];
    expect(long.events).toBe(short.events);
  });

  test('on one machine work goes on within 30 s of its return', async () => {
    const { resumed } = await outage({ hours: 2, parallel: 4, heartbeatSeconds: 30 });
    expect(resumed).toBeLessThanOrEqual(2 * 3_600_000 + 30_000);
  });
});

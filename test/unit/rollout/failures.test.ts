/** An environment that fails again and again: what is its own doing, and what may pass. */
import type { ArtifactStore } from '../../../src/store/store';
import { type FailureType, OutsideFailure } from '../../../src/domain/failures';
import { rollOut, type RollOutOptions } from '../../../src/rollout/engine';
import { countingBatch } from '../../support/counting-batch';
import { temporaryStore } from '../../support/temporary-store';
import { countingEnvironment, type CountingEnvironment, countingPolicy } from '../../support/counting-environment';

let store: ArtifactStore;
temporaryStore((made) => (store = made));

const options = (changes: Partial<RollOutOptions> = {}) => countingBatch(store, changes);
const reasonFor = (changes: Partial<RollOutOptions>) => rollOut(options(changes)).catch((reason: unknown) => reason);
const STDERR = 'environment process "env" ended with exit code 139; stderr: row 3 | segmentation fault';
const died = () => new OutsideFailure('EnvironmentDied', STDERR);

/** One process for all episodes: when it dies, it dies for all that are open, and `dies` says at which task's step it does. */
function sharedProcess(dies: (task: string) => boolean): CountingEnvironment {
  let run = 0;
  const inner = countingEnvironment();
  return {
    ...inner,
    async reset(task, signal) {
      const begun = run;
      const episode = await inner.reset(task, signal);
      return {
        ...episode,
        async step(message) {
          if (begun === run && dies(task.id)) run += 1;
          if (begun !== run) throw died();
          return episode.step(message);
        },
      };
    },
  };
}

test('a task at which the environment dies every time is broken, whose error says why; the others are scored', async () => {
  const environment = sharedProcess((task) => task === 'n-1');
  const { summary, records } = await rollOut(options({ environment, attempts: 1, concurrency: 1 }));
  expect(summary).toMatchObject({ scored: 2, broken: 1 });
  const error = { type: 'EnvironmentDied', message: STDERR };
  expect((await records()).find(({ task }) => task === 'n-1')).toMatchObject({ status: 'broken', error });
  const client = countingPolicy();
  expect(await rollOut(options({ client, attempts: 1 }))).toMatchObject({ reused: 2, summary: { scored: 3 } });
  expect(client.turns).toBe(3);
});

test('where nothing is scored the batch fails with the failure of its rollouts, and is scored when it is tried again', async () => {
  let crashes = 0;
  const environment = sharedProcess(() => crashes++ < 6);
  const changes = { environment, maxAttempts: 1, concurrency: 1 };
  const error = await reasonFor(changes);
  expect(error).toMatchObject({ type: 'EnvironmentDied', retryable: true });
  expect((error as Error).message).toContain(
    'a batch: none of the first 6 rollouts was scored: 6 EnvironmentDied, as at',
  );
  expect(await rollOut(options(changes))).toMatchObject({ reused: 0, summary: { scored: 6 } });
});

test.each<FailureType>([
  ...(['ArtifactDamaged', 'DiskFull', 'PythonFailed', 'BadInput'] as const),
  ...(['AdapterRefused', 'PolicyServerWrong', 'WrongBaseModel'] as const),
])(
  'what is wrong with what all rollouts need fails the batch at once, also where some are scored: %s',
  async (type) => {
    let asked = 0;
    // As a policy client that can't get hold of the policy's adapters.
    const client = countingPolicy(({ messages }) => {
      if (messages[0]!.content !== 'n-2') return;
      asked += 1;
      throw new OutsideFailure(type, 'adapter x');
    });
    expect(await reasonFor({ client, concurrency: 1 })).toMatchObject({ type, message: 'adapter x' });
    expect(asked).toBe(1);
    expect(await rollOut(options())).toMatchObject({ reused: 4, summary: { scored: 6 } });
  },
);

describe('more broken rollouts than the campaign allows', () => {
  const tasks = (count: number) =>
    Array.from({ length: count }, (_, n) => `n-${n % 3}${'0'.repeat(Math.floor(n / 3))}1`);
  /** As an environment that gives the id of an open episode again: it breaks the task, and would again. */
  const breaking = (broken: string[]) =>
    countingEnvironment({
      maxSteps: 2,
      beforeStep: (task) => {
        const type = task === 'n-001' ? 'JudgeRejected' : 'BadEnvironment';
        if (broken.includes(task))
          throw new OutsideFailure(type, `"${task.length}" is the id of an episode that is still open`);
      },
    });
  const batch = (broken: number, total: number, changes: Partial<RollOutOptions> = {}) => {
    const all = tasks(total);
    const sorted = [...all].sort();
    // Some are scored first.
    const environment = breaking(sorted.slice(2, 2 + broken));
    return {
      environment,
      tasks: all,
      attempts: 1,
      concurrency: 1,
      maxBrokenShare: 0.1,
      title: 'base rollouts',
      ...changes,
    };
  };

  test('stop the batch at once, with how many broke of what and where; what was scored is kept', async () => {
    const error = (await reasonFor(batch(20, 40))) as OutsideFailure;
    expect(error).toMatchObject({ type: 'BadEnvironment', retryable: false });
    expect(error.message).toMatch(
      /^base rollouts: 5 of the first 7 rollouts broke, more than 10% of 40, which is rollouts\.maxBrokenShare; .*: 5 BadEnvironment, as at task n-0\S+: "\d+" is the id of an episode that is still open$/,
    );
    expect(await rollOut(options({ ...batch(0, 40) }))).toMatchObject({ reused: 2, summary: { scored: 40 } });
  });

  test('below the limit, and as few as say nothing, stay broken', async () => {
    const scored = (one: Partial<RollOutOptions>) => rollOut(options(one)).then(({ summary }) => summary);
    expect(await scored(batch(4, 40))).toMatchObject({ scored: 36, broken: 4 });
    expect(await scored(batch(3, 6, { seed: 8 }))).toMatchObject({ scored: 3, broken: 3 });
    expect(await reasonFor(batch(4, 7, { seed: 9 }))).toMatchObject({ type: 'BadEnvironment' });
    expect(await scored(batch(4, 7, { seed: 9, maxBrokenShare: 0.6 }))).toMatchObject({ scored: 3, broken: 4 });
  });
});

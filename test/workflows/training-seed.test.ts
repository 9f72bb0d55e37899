/** A training seed reaches trainings alone: whatever else a campaign asks for is what another one with the same seed has asked for. */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import type { Activities } from './fake-activities';
import { quiet, start, timeSkipping, withWorkers } from './environment';
import { config, fakeActivities } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
beforeAll(async () => {
  env = await timeSkipping();
});
afterAll(() => env?.teardown());

/** What each activity was asked for, but the record that the report is written from. */
async function asked(trainingSeed?: number) {
  const { activities } = fakeActivities();
  const calls = new Map<string, unknown[]>();
  const noted = Object.fromEntries(
    Object.entries(activities).map(([name, activity]) => [
      name,
      (input: unknown) => {
        calls.set(name, [...(calls.get(name) ?? []), input]);
        return (activity as (input: unknown) => unknown)(input);
      },
    ]),
  ) as unknown as Activities;
  const campaign = config({ name: 'seeded', ...(trainingSeed !== undefined && { trainingSeed }) });
  await withWorkers(env, noted, async () => (await start(env, { campaign })).result());
  const text = (name: string) => (calls.get(name) ?? []).map((input) => JSON.stringify(input)).sort();
  // The record holds the campaign as it is and when it was.
  const apart = ['train', 'prepare', 'keepPiece', 'keepResult', 'writeReport'];
  const others = [...calls.keys()].filter((name) => !apart.includes(name)).sort();
  return { trainings: calls.get('train') as { name: string; seed: number }[], others: others.map((n) => [n, text(n)]) };
}

test('trainings have it, and nothing else changes', async () => {
  const [plain, other] = [await asked(), await asked(2)];
  expect(plain.trainings.length).toBeGreaterThan(2);
  expect(new Set(plain.trainings.map(({ seed }) => seed))).toEqual(new Set([1]));
  expect(new Set(other.trainings.map(({ seed }) => seed))).toEqual(new Set([2]));
  const named = (trainings: typeof plain.trainings) =>
    trainings.map((training) => JSON.stringify({ ...training, seed: 0 })).sort();
  expect(named(other.trainings)).toEqual(named(plain.trainings));
  expect(other.others).toEqual(plain.others);
});

/** Inputs of activities, stored as a campaign's workflow stores them, and the heartbeats of running activities. */
import { MockActivityEnvironment } from '@temporalio/testing';
import type { RollOutInput } from '../../src/activities/types';
import type { ArtifactStore } from '../../src/store/store';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { createShop } from '../../examples/shop/target/shop';

type Puts = Pick<ArtifactStore, 'put'>;

export const put = (store: Puts, key: string, body: string, mediaType = 'application/json'): Promise<ArtifactRef> =>
  store.put({ key, producer: 'test', inputs: [], mediaType, body });

export const putModule = (store: Puts, source: string): Promise<ArtifactRef> =>
  put(store, source, source, 'text/javascript');

/** Stores a plan of a campaign's tasks with these train tasks and no others. */
export const putPlan = (store: Puts, train: string[]): Promise<ArtifactRef> =>
  put(store, `plan of ${train.join()}`, JSON.stringify({ train, validation: [], router: [], test: [] }));

/** One attempt at each task of a plan to train on. */
export const rollOutInput = (
  plan: ArtifactRef,
  changes: Partial<RollOutInput> & Pick<RollOutInput, 'store'>,
): RollOutInput => ({
  ...{ purpose: 'base_rollouts', title: 'base rollouts', campaign: 'one', budget: {} },
  environment: { kind: 'shop' },
  policy: { base: 'base', adapters: [] },
  tasks: { kind: 'plan', plan, part: 'train' },
  sampling: { temperature: 1, topP: 1, maxTokens: 16 },
  ...{ attempts: 1, maxSteps: 8, seed: 3, concurrency: 1, maxAttempts: 1, maxBrokenShare: 1 },
  ...changes,
});

/** Runs an activity and adds its heartbeats to `beats`. */
export async function run<I, O, B = unknown>(
  activity: (input: I) => Promise<O>,
  input: I,
  { attempt = 1, faults = 0, beats = [] }: { attempt?: number; faults?: number; beats?: B[] } = {},
): Promise<O> {
  const environment = new MockActivityEnvironment({
    attempt,
    ...(faults > 0 && { heartbeatDetails: { counts: { faults, settled: attempt - 1 } } }),
  });
  environment.on('heartbeat', (beat: B) => beats.push(beat));
  return environment.run(activity, input) as Promise<O>;
}

/** A test task of the shop, and what its user says first. */
export async function shopTestTask(): Promise<{ id: string; text: string }> {
  const shop = createShop();
  const [task] = await shop.tasks('test');
  const { start } = await shop.reset({ id: task!.id, seed: 0 });
  return { id: task!.id, text: start.messages.find(({ role }) => role === 'user')!.content };
}

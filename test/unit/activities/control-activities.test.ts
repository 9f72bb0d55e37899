/**
 * The short steps tell of their progress too: a step that is lost with its worker is known as lost by its silence. What can't go well is not
 * tried again.
 */
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { join, resolve } from 'node:path';
import { createControlActivities } from '../../../src/activities';
import { EnvironmentPool } from '../../../src/activities/environments';
import { mapped } from '../../../src/activities/errors';
import { activitySignal, noteAnswer } from '../../../src/activities/heartbeat';
import type { FailureType } from '../../../src/domain/failures';
import { openFolderStore } from '../../../src/store/open-store';
import { campaignSchema } from '../../../src/domain/campaign';
import type { AnalysisHeartbeat } from '../../../src/domain/work';
import { poolOf } from '../../../src/policy/base-model';
import { registry, shopParts } from '../../support/kinds';
import { python } from '../../support/embedded-server';
import { run as runActivity } from '../../support/activity-inputs';
import { temporaryFolder } from '../../support/temporary-folder';

// A fingerprint of a base model loads torch.
jest.setTimeout(120_000);
const home = temporaryFolder();
const store = openFolderStore(join(home, 'artifacts'));
const environments = new EnvironmentPool(store, registry.environments);
const model = resolve(__dirname, '../../..', 'models', 'base');
const id = 'base@8facfb00a73e';
const activities = createControlActivities({ store, environments, kinds: registry, home, python, model });
const campaign = campaignSchema.parse({
  name: 'told',
  ...shopParts,
  baseModel: { path: 'base', id },
  rollouts: { tasks: 20 },
  training: { groupsPerStep: 4 },
  validation: { targetTasks: 5 },
  router: { kind: 'learned', tasks: 10, trials: 1 },
  evaluation: { tasks: 10 },
});
afterAll(() => environments.close());

/** One without details says that the worker is alive. */
const beats: (AnalysisHeartbeat | undefined)[] = [];
const run = <I, O>(activity: (input: I) => Promise<O>, input: I): Promise<O> => {
  beats.length = 0;
  return runActivity(activity, input, { beats });
};
const prepared = (changes: object = {}) =>
  run(activities.prepare, { campaign: campaignSchema.parse({ ...campaign, ...changes }) });
const refused = Object.assign(new Error('connect to :1'), { code: 'ECONNREFUSED' });
const again = (type: FailureType, message: string) => ({ type, message, nonRetryable: false });
test.each([
  ['a defect', new TypeError("Cannot read properties of undefined (reading 'x')"), undefined],
  ['a defect', new ReferenceError('x is not defined'), undefined],
  ['a defect', new RangeError('Invalid array length'), undefined],
  ['for want of memory', new RangeError('allocation failed'), again('Unexpected', 'RangeError: allocation failed')],
  ['what somebody else wrote', new SyntaxError('Unexpected <'), again('Unexpected', 'SyntaxError: Unexpected <')],
  ['anything else', new Error('odd'), again('Unexpected', 'odd')],
  [
    'no connection',
    new TypeError('fetch failed', { cause: refused }),
    again('EndpointUnavailable', 'TypeError: fetch failed: connect to :1'),
  ],
])('%s (%s) is told from what may pass and from what is outside', async (_what, error, expected) => {
  const { step } = mapped({ step: () => Promise.reject(error) }, { home, store });
  const failure: unknown = await new MockActivityEnvironment().run(step).catch((thrown: unknown) => thrown);
  expect(failure).toBeInstanceOf(ApplicationFailure);
  expect(failure).toMatchObject(
    expected ?? { type: error.name, message: error.message, nonRetryable: true, cause: error },
  );
});

test('a step heartbeats while it waits, and ends once Temporal has not answered for the heartbeat timeout', async () => {
  let beats = 0;
  const activity = new MockActivityEnvironment({ heartbeatTimeoutMs: 2000 });
  activity.on('heartbeat', () => beats++);
  const waits = () =>
    new Promise<never>((_, reject) => {
      const signal = activitySignal();
      signal.addEventListener('abort', () => reject(signal.reason as Error));
    });
  noteAnswer();
  await expect(activity.run(mapped({ waits }, { home, store }).waits)).rejects.toMatchObject({
    ...{ type: 'Superseded', nonRetryable: false },
  });
  expect(beats).toBeGreaterThan(2);
});

test('the pool is that of the store and of the base model, to which a server’s context belongs, unless one is named', async () => {
  const policyServer = { kind: 'vllm', url: 'http://127.0.0.1:2', contextTokens: 8192 };
  const [own, other] = [await prepared({}), await prepared({ policyServer })];
  const named = await prepared({ workers: { pool: 'night' } });
  expect(other.base).toBe(`${own.base}, 8192 tokens`);
  expect(own.pool).toMatch(/^[0-9a-f]{12}$/);
  expect(new Set([own.pool, other.pool, named.pool]).size).toBe(3);
  expect(named.pool).toBe('night');
  expect(poolOf({ store: 'another', base: own.base })).not.toBe(own.pool);
});

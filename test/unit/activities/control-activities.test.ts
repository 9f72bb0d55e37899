/** How errors of activities are classified, and how steps heartbeat. */
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { mapped } from '../../../src/activities/errors';
import { activitySignal, noteAnswer } from '../../../src/activities/heartbeat';
import type { FailureType } from '../../../src/domain/failures';
import { openFolderStore } from '../../../src/store/open-store';
import { temporaryFolder } from '../../support/temporary-folder';

const home = temporaryFolder();
const store = openFolderStore(home);
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

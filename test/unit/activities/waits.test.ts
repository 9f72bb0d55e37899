/** Parts that an activity waits for hang for ever: it heartbeats, and ends by that wait's own deadline. Those of other parts are tested with them. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mapped } from '../../../src/activities/errors';
import { withDeadline } from '../../../src/store/deadline';
import { openFolderStore } from '../../../src/store/open-store';
import { runPython } from '../../../src/policy/python';
import { temporaryFolder } from '../../support/temporary-folder';

const home = temporaryFolder();
const store = openFolderStore(join(home, 'artifacts'));
const python = join(home, 'python');
writeFileSync(python, '#!/bin/sh\nexec sleep 300\n', { mode: 0o755 });
const hanging = { ...store, find: () => new Promise<undefined>(() => undefined) };

test.each<[what: string, type: string, work: () => Promise<unknown>]>([
  ['the store', 'StoreUnavailable', () => withDeadline(hanging, 1).find('key')],
  ['a Python child', 'PythonFailed', () => runPython({ python, args: ['merge'], silentSeconds: 1 })],
])('%s', async (_what, type, work) => {
  let beats = 0;
  const activity = new MockActivityEnvironment();
  activity.on('heartbeat', () => beats++);
  await expect(activity.run(mapped({ work }, { home, store }).work)).rejects.toMatchObject({ type });
  expect(beats).toBeGreaterThan(0);
});

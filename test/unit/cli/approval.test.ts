/** Decisions in the store. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { createControlActivities } from '../../../src/activities';
import type { Dependencies } from '../../../src/activities/context';
import { openFolderStore } from '../../../src/store/open-store';
import { type Decision } from '../../../src/domain/approval';
import { temporaryFolder } from '../../support/temporary-folder';

const home = temporaryFolder();
it('the first decision on a thing of a workflow stays', async () => {
  // Each call opens the store again.
  const env = () => ({
    of: new MockActivityEnvironment(),
    ...createControlActivities({ store: openFolderStore(home) } as Dependencies),
  });
  const recall = (about: object) => env().of.run(env().recallDecision, about as never) as Promise<Decision | null>;
  const keep = (kept: object) => env().of.run(env().keepDecision, kept as never);
  const about = { about: 'demo/capability/ask_a', of: 'sha' };
  const decision: Decision = { kind: 'reject', reason: 'too easy', at: 1 };
  expect(await recall(about)).toBeNull();
  await keep({ ...about, decision });
  await keep({ ...about, decision: { kind: 'approve', at: 1 } });
  expect(await recall(about)).toEqual(decision);
  expect(await recall({ ...about, of: 'another version' })).toBeNull();
  expect(await recall({ ...about, about: 'demo-2/capability/ask_a' })).toBeNull();
});

/** Which of the things that wait for approval a command means, and decisions in the store. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { createControlActivities } from '../../../src/activities';
import type { Dependencies } from '../../../src/activities/context';
import { openFolderStore } from '../../../src/store/open-store';
import { type Decision } from '../../../src/domain/approval';
import { temporaryFolder } from '../../support/temporary-folder';
const by = { by: 'person', at: 1 } as const;

const home = temporaryFolder();
it('the first decision on a thing of a workflow stays', async () => {
  /** Over a store that is opened anew. */
  const decisions = () => {
    const store = openFolderStore(home);
    const { recallDecision, keepDecision } = createControlActivities({ store } as Dependencies);
    const env = new MockActivityEnvironment();
    return {
      recall: (about: { about: string; of: string }) => env.run(recallDecision, about) as Promise<Decision | null>,
      keep: (kept: Parameters<typeof keepDecision>[0]) => env.run(keepDecision, kept),
    };
  };
  const { recall, keep } = decisions();
  const of = { about: 'demo/capability/ask_a', of: 'sha' };
  const decision: Decision = { kind: 'reject', reason: 'too easy', ...by };
  expect(await recall(of)).toBeNull();
  await keep({ ...of, decision });
  await keep({ ...of, decision: { kind: 'approve', ...by } });
  const again = decisions();
  expect(await again.recall(of)).toEqual(decision);
  expect(await again.recall({ ...of, of: 'another version' })).toBeNull();
  expect(await again.recall({ ...of, about: 'demo-2/capability/ask_a' })).toBeNull();
});

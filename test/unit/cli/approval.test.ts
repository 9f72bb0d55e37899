/** Which of the things that wait for approval a command means, and decisions in the store. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { createControlActivities } from '../../../src/activities';
import type { Dependencies } from '../../../src/activities/context';
import { openFolderStore } from '../../../src/store/open-store';
import { UserError } from '../../../src/cli/errors';
import { choose, type PendingApproval } from '../../../src/cli/approvals';
import { type Decision, type Waiting } from '../../../src/domain/approval';
import { temporaryFolder } from '../../support/temporary-folder';

const waiting: Waiting = { what: 'capabilities', of: 'a', names: ['ask_a', 'tell_b'], since: 0, reminded: false };
const environment = (name: string): Waiting => ({ ...waiting, what: 'environment', names: [name], round: 2, of: name });
const by = { by: 'person', at: 1 } as const;

describe('which of the things that wait is meant', () => {
  const of = (one: Waiting): PendingApproval => ({ workflowId: one.of, waiting: one });
  const two = [of(environment('ask_a')), of(environment('tell_b'))];
  const meant = (verb: 'approve' | 'reject', pending: PendingApproval[], ...what: string[]) =>
    choose({ campaign: 'demo', pending, what, verb });

  it('of environments: all, or the one that is named', () => {
    expect(meant('approve', two)).toEqual(two.map((approval) => ({ approval })));
    for (const verb of ['approve', 'reject'] as const)
      expect(meant(verb, two, 'tell_b')).toEqual([{ approval: two[1] }]);
    const editing = () => choose({ campaign: 'demo', pending: two, what: [], verb: 'approve', edits: true });
    for (const wrong of [
      editing,
      () => meant('reject', two, 'all', 'ask_a'),
      () => meant('reject', [], 'all'),
      () => meant('approve', two, 'x'),
    ])
      expect(wrong).toThrow(UserError);
  });

  it('of capabilities: together, some left out', () => {
    const pending = [of(waiting)];
    expect(meant('reject', pending, 'ask_a')).toEqual([{ approval: pending[0], names: ['ask_a'] }]);
    expect(meant('reject', pending, 'all')).toEqual([{ approval: pending[0] }]);
    expect(() => meant('approve', pending, 'ask_a')).toThrow(UserError);
  });
});

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

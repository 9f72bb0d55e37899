/** Approval beside the workflows: the words for what waits and was decided, and decisions in the store. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { createControlActivities } from '../../../src/activities';
import type { Dependencies } from '../../../src/activities/context';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { approvalNotes } from '../../../src/cli/run/campaign';
import { choose, type PendingApproval } from '../../../src/cli/approvals';
import { sinceText } from '../../../src/cli/watch/tree';
import type { Snapshot } from '../../../src/cli/watch/snapshot';
import { decisionText, waitingText, type Decision, type Waiting } from '../../../src/domain/approval';
import { temporaryFolder } from '../../support/temporary-folder';

const waiting: Waiting = { what: 'capabilities', of: 'a', names: ['ask_a', 'tell_b'], since: 0, reminded: false };
const environment = (name: string): Waiting => ({ ...waiting, what: 'environment', names: [name], round: 2, of: name });
const by = { by: 'person', at: 1 } as const;

it('what waits is said with the command that approves it', () => {
  const text = (one: Waiting, since = '') => waitingText({ waiting: one, campaign: 'demo', since });
  expect(text(waiting, 'since 2 h')).toBe('waits for approval of 2 capabilities since 2 h: campaign approve demo');
  expect(text({ ...waiting, names: ['ask_a'], reminded: true })).toBe(
    'reminder: waits for approval of 1 capability: campaign approve demo',
  );
  expect(text(environment('ask_a'))).toBe(
    'waits for approval of its environment, round 2: campaign approve demo ask_a',
  );
});

it('how long it waits is rounded', () => {
  const minute = 60_000;
  const said = [4, 11, 61, 47 * 60, 73 * 60].map((minutes) => sinceText(minutes * minute));
  expect(said).toEqual(['', 'since 10 min', 'since 1 h', 'since 47 h', 'since 3 days']);
});

it.each<[Decision, string]>([
  [{ kind: 'approve', ...by }, 'approved'],
  [{ kind: 'approve', capabilities: [{ name: 'a_b', definition: 'd' }], ...by }, 'approved with edits'],
  [{ kind: 'approve', by: 'timeout', at: 1 }, 'approved, since nobody answered in time'],
  [{ kind: 'reject', reason: 'no skill', ...by }, 'rejected: no skill'],
  [{ kind: 'reject', names: ['a_b'], reason: 'no skill', ...by }, 'rejected (a_b): no skill'],
])('what was decided is said in words', (decision, words) => {
  expect(decisionText(decision)).toBe(words);
});

describe('which of the things that wait is meant', () => {
  const of = (one: Waiting): PendingApproval => ({ workflowId: one.of, waiting: one });
  const two = [of(environment('ask_a')), of(environment('tell_b'))];
  const meant = (verb: 'approve' | 'reject', pending: PendingApproval[], ...what: string[]) =>
    choose({ campaign: 'demo', pending, what, verb });

  it('of environments: all, or the one that is named', () => {
    expect(meant('approve', two)).toEqual(two.map((approval) => ({ approval })));
    for (const verb of ['approve', 'reject'] as const)
      expect(meant(verb, two, 'tell_b')).toEqual([{ approval: two[1] }]);
    expect(() => choose({ campaign: 'demo', pending: two, what: [], verb: 'approve', edits: true })).toThrow(
      '--edit is of one: the environment of ask_a, round 2; the environment of tell_b, round 2 wait for approval',
    );
    expect(() => meant('reject', two, 'all', 'ask_a')).toThrow('name nothing beside it');
    expect(() => meant('reject', [], 'all')).toThrow('nothing of campaign demo waits');
    expect(() => meant('approve', two, 'x')).toThrow(
      'x does not wait for approval; what waits: the environment of ask_a, round 2; the environment of tell_b, round 2',
    );
  });

  it('of capabilities: together, some left out', () => {
    const pending = [of(waiting)];
    expect(meant('reject', pending, 'ask_a')).toEqual([{ approval: pending[0], names: ['ask_a'] }]);
    expect(meant('reject', pending, 'all')).toEqual([{ approval: pending[0] }]);
    expect(() => meant('approve', pending, 'ask_a')).toThrow(/approved together .*campaign reject demo NAME/);
  });
});

it('a run says once how to approve each thing that waits', () => {
  const notes: string[] = [];
  const note = approvalNotes({ note: (_stage, text) => void notes.push(text) });
  const snapshot = {
    name: 'demo',
    progress: { waiting },
    children: [{ progress: { waiting: environment('ask_a') } }, {}],
  } as unknown as Snapshot;
  note(snapshot);
  note(snapshot);
  expect(notes).toEqual([
    expect.stringMatching(
      /^ask_a, tell_b: waits .*`campaign approve demo` or `campaign reject demo NAME\.\.\. --reason/,
    ),
    expect.stringMatching(
      /^the environment of ask_a: waits .*`campaign approve demo ask_a` or `campaign reject demo ask_a/,
    ),
  ]);
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

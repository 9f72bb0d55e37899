import { durationText } from '../../src/cli/watch/format';
import { Changes } from '../../src/cli/watch/json-lines';
import { Rates } from '../../src/cli/watch/rates';
import type { Snapshot } from '../../src/cli/watch/snapshot';
import { frameLines, LiveTree } from '../../src/cli/watch/terminal';

const now = 1_000_000;
const snapshot: Snapshot = {
  name: 'demo',
  status: 'RUNNING',
  startedAt: now - 192_000,
  activities: [],
  progress: {
    campaign: 'demo',
    seed: 1,
    paused: false,
    stages: [
      { name: 'rollouts', status: 'done', detail: '340 train tasks, base model' },
      { name: 'selection', status: 'done', detail: 'ask_for_missing_identifier' },
      { name: 'capabilities', status: 'running', detail: '' },
      { name: 'router', status: 'waiting', detail: '' },
      { name: 'evaluation', status: 'waiting', detail: '' },
    ],
    children: [
      { workflowId: 'demo/capability/ask', kind: 'capability', name: 'ask', status: 'running', detail: '' },
      {
        workflowId: 'demo/capability/tell',
        kind: 'capability',
        name: 'tell',
        status: 'failed',
        detail: 'not calibrated',
      },
      { workflowId: 'demo/arm/grpo_target', kind: 'arm', name: 'grpo_target', status: 'running', detail: '' },
    ],
    rollouts: { scored: 2000, broken: 1 },
  },
  children: [
    {
      workflowId: 'demo/capability/ask',
      progress: { name: 'ask', phase: 'train', round: 1, detail: 'waiting for a gpu slot', paused: false },
      activities: [
        {
          type: 'train',
          attempt: 1,
          heartbeat: { kind: 'train', step: 12, steps: 24, reward: 0.6123, rollouts: { done: 20, total: 64 } },
          heartbeatAt: now - 1000,
        },
      ],
    },
    {
      workflowId: 'demo/arm/grpo_target',
      progress: { name: 'grpo_target', phase: 'train', round: 1, detail: '', paused: false },
      activities: [{ type: 'train', attempt: 2, lastFailure: 'TrainerDied: gone', heartbeatAt: now - 65_000 }],
    },
  ],
};
const frame = (over: Partial<Parameters<typeof frameLines>[0]> = {}) =>
  frameLines({ snapshot, rates: new Rates(), now, columns: 120, colour: false, ...over });

describe('the tree on a terminal', () => {
  it('shows stages, children with phase, step and reward, and what is wrong', () => {
    expect(frame({ link: 'http://localhost:8233/x' })).toEqual([
      'demo · seed 1 · running 3m12s',
      '✓ rollouts             340 train tasks, base model',
      '✓ selection            ask_for_missing_identifier',
      '▸ capabilities',
      '▸   ask                train · step 12/24 · reward 0.61 · rollouts 20/64',
      '✗   tell               not calibrated',
      '▸   grpo_target (arm)  train · silent for 1 min · attempt 2: TrainerDied: gone',
      '· router',
      '· evaluation',
      '  2000 rollouts scored, 1 broken',
      'http://localhost:8233/x',
    ]);
  });

  it('shows how far rollouts and the analysis are', () => {
    const early = structuredClone(snapshot);
    const stage = early.progress?.stages[1];
    if (stage) Object.assign(stage, { status: 'running', detail: '' });
    const analysis = { kind: 'analysis' as const, title: 'pass 2', done: 30, total: 400 };
    const rollouts = { kind: 'rollouts' as const, title: 'base rollouts', done: 10, total: 340, broken: 1 };
    early.activities = [analysis, rollouts].map((heartbeat) => ({ type: 'any', attempt: 1, heartbeat }));
    const rates = new Rates();
    frame({ snapshot: early, rates });
    early.activities[0] = { type: 'any', attempt: 1, heartbeat: { ...analysis, done: 50 } };
    expect(frame({ snapshot: early, rates, now: now + 2000 })).toContain(
      '▸ selection            pass 2 50/400 · 10.0/s · base rollouts 10/340 · 1 broken',
    );
  });

  it('is never wider than the terminal', () => {
    for (const line of frame({ columns: 40 })) expect(line.length).toBeLessThanOrEqual(40);
  });

  it('says so when no worker answers', () => {
    const silent = structuredClone(snapshot);
    delete silent.progress;
    expect(frame({ snapshot: silent }).join('\n')).toContain('no worker answers');
  });

  it('is drawn over what was drawn before, and not over what was printed', () => {
    let text = '';
    const out = { rows: 24, write: (chunk: string) => (text += chunk) } as unknown as NodeJS.WriteStream;
    const tree = new LiveTree(out);
    tree.draw(['one', 'two']);
    tree.draw(['three', 'four']);
    tree.print('a note');
    tree.draw(['five']);
    expect(text).toBe('one\ntwo\n\x1b[2A\x1b[0Jthree\nfour\n\x1b[2A\x1b[0Ja note\nfive\n');
  });
});

describe('JSON lines', () => {
  it('tell what changes, once', () => {
    const changes = new Changes(new Rates());
    const first = changes.since(snapshot, now);
    expect(first.map(({ stage, child, status }) => [stage, child, status].filter(Boolean).join(' '))).toEqual([
      'campaign running',
      'rollouts done',
      'selection done',
      'capabilities running',
      'capabilities ask running',
      'capabilities tell failed',
      'capabilities grpo_target (arm) running',
    ]);
    expect(first[4]).toMatchObject({ campaign: 'demo', detail: 'train · step 12/24 · reward 0.61 · rollouts 20/64' });
    expect(changes.since(snapshot, now + 1000)).toEqual([]);
  });

  it('tell a new status at once and a growing detail now and then', () => {
    const changes = new Changes(new Rates());
    changes.since(snapshot, now);
    const later = structuredClone(snapshot);
    const heartbeat = later.children[0]?.activities[0]?.heartbeat;
    if (heartbeat?.kind === 'train') heartbeat.step = 13;
    expect(changes.since(later, now + 1000)).toEqual([]);
    const router = later.progress?.stages[3];
    if (router) router.status = 'running';
    expect(changes.since(later, now + 2000).map(({ stage }) => stage)).toEqual(['router']);
    expect(changes.since(later, now + 6000).map(({ child }) => child)).toContain('ask');
  });
});

it('a rate is the growth over the last half minute', () => {
  const rates = new Rates();
  expect(rates.perSecond('a', 0, 0)).toBeUndefined();
  expect(rates.perSecond('a', 40, 2000)).toBe(20);
  expect(rates.perSecond('a', 40, 4000)).toBe(10);
  // A new batch under the same name begins at 0.
  expect(rates.perSecond('a', 5, 6000)).toBeUndefined();
});

it('durations are short', () => {
  expect([0, 59.6, 192, 7500].map(durationText)).toEqual(['0s', '1m00s', '3m12s', '2h05m']);
});

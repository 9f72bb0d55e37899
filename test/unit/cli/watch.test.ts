import { Changes, frameLines } from '../../../src/cli/watch/output';
import { type ActivitySnapshot, type Snapshot } from '../../../src/cli/watch/snapshot';

const now = 1_000_000;
const activity = (over: Partial<ActivitySnapshot>): ActivitySnapshot => ({
  type: 'train',
  state: 'started',
  attempt: 1,
  ...over,
});
const ask = { workflowId: 'demo/capability/ask', kind: 'capability', name: 'ask' } as const;
const tell = { workflowId: 'demo/capability/tell', kind: 'capability', name: 'tell' } as const;
const grpo = { workflowId: 'demo/arm/grpo_target', kind: 'arm', name: 'grpo_target' } as const;
const heartbeat = { kind: 'train', step: 12, steps: 24, reward: 0.6123, rollouts: { done: 20, total: 64 } } as const;

/** A new one each time, for tests that change it. */
const campaign = () => ({
  name: 'demo',
  runId: 'run',
  status: 'RUNNING',
  stage: 'capabilities' as Snapshot['stage'],
  startedAt: now - 192_000,
  activities: [] as ActivitySnapshot[],
  progress: {
    campaign: 'demo',
    seed: 1,
    stages: [
      { name: 'rollouts', status: 'completed', detail: '340 train tasks, base model' },
      { name: 'selection', status: 'completed', detail: 'ask_for_missing_identifier' },
      { name: 'capabilities', status: 'running', detail: '' },
      { name: 'router', status: 'waiting', detail: '' },
      { name: 'evaluation', status: 'waiting', detail: '' },
    ],
    children: [
      { ...ask, status: 'running', detail: '' },
      { ...tell, status: 'failed', detail: 'not calibrated' },
      { ...grpo, status: 'running', detail: '' },
    ],
    rollouts: { scored: 2000, broken: 1 },
  } as NonNullable<Snapshot['progress']>,
  children: [
    trains(ask, activity({ heartbeat })),
    trains(grpo, activity({ attempt: 2, lastFailure: 'the trainer is gone' })),
  ] as [Snapshot['children'][number], Snapshot['children'][number]],
});
const trains = (child: typeof ask | typeof grpo, ...activities: ActivitySnapshot[]): Snapshot['children'][number] => ({
  ...child,
  progress: { name: child.name, phase: 'train', round: 1, detail: 'waiting for a gpu slot' },
  activities,
});

const frame = (snapshot: Snapshot = campaign(), over: Partial<Parameters<typeof frameLines>[0]> = {}) =>
  frameLines({ snapshot, now, columns: 120, ...over });
describe('the tree', () => {
  it('shows a cancelled campaign as cancelled', () => {
    const lines = frame({ ...campaign(), status: 'CANCELLED', closedAt: now });
    expect(lines.map((line) => line[0]).join('')).toBe('d✓✓––✗–·· ');
  });

  it('shows stages and children, no line wider than the terminal', () => {
    for (const columns of [120, 60, 30]) {
      const lines = frame(campaign(), { columns });
      expect(lines.map((line) => line[0]).join('')).toBe('d✓✓▸▸✗▸·· ');
      expect(lines.filter((line) => line.length > columns)).toEqual([]);
    }
  });

  it('shows nothing of a failed campaign as running', () => {
    const failed: Snapshot = { ...campaign(), status: 'FAILED', closedAt: now, failure: 'no config.json' };
    expect(frame(failed).filter((line) => line.startsWith('▸'))).toEqual([]);
    expect(frame(failed).join()).toContain('no config.json');
  });

  it('shows no control characters of what others say', () => {
    const words = 'died:\u001b[2J\u001b[31m Traceback\u001b]0;owned\u0007\u009b2J\r\u202e';
    const rude = { ...campaign(), status: 'FAILED', failure: words };
    rude.progress.stages[0]!.detail = words;
    rude.children[1].activities[0]!.lastFailure = words;
    const text = frame(rude).join('\n');
    expect(text.match(/died: Traceback/g)).toHaveLength(3);
    expect(text.match(/[^\P{Cc}\n]|\u202e/gu)).toBeNull();
  });
});

describe('JSON lines', () => {
  it('tell what changes, once: a new status at once, a growing detail now and then', () => {
    const changes = new Changes();
    const first = changes.since(campaign(), now);
    expect(first.map(({ stage, child, status }) => [stage, child, status].filter(Boolean).join(' '))).toEqual([
      'campaign running',
      'rollouts completed',
      'selection completed',
      'capabilities running',
      'capabilities ask running',
      'capabilities tell failed',
      'capabilities grpo_target (baseline) running',
    ]);
    const detail = 'train · step 12/24 · reward 0.61 · rollouts 20/64';
    const time = new Date(now).toISOString();
    expect(first[4]).toEqual({
      time,
      campaign: 'demo',
      stage: 'capabilities',
      child: 'ask',
      status: 'running',
      detail,
    });
    expect(changes.since(campaign(), now + 1000)).toEqual([]);
    const later = campaign();
    later.children[0].activities[0]!.heartbeat = { ...heartbeat, step: 13 };
    expect(changes.since(later, now + 1000)).toEqual([]);
    later.progress.stages[3]!.status = 'running';
    expect(changes.since(later, now + 2000).map(({ stage }) => stage)).toEqual(['router']);
    expect(changes.since(later, now + 6000).map(({ child }) => child)).toContain('ask');
  });
});

import { ApplicationFailure, TimeoutFailure } from '@temporalio/common';
import { failureLimit } from '../../../src/cli/campaign-status';
import { Changes, frameLines, LiveTree } from '../../../src/cli/watch/output';
import { type ActivitySnapshot, reasonOf, type Snapshot, withKnown } from '../../../src/cli/watch/snapshot';
import { activityTexts, Rates } from '../../../src/cli/watch/tree';
import { Screen } from '../../support/screen';

const now = 1_000_000;
const activity = (over: Partial<ActivitySnapshot>): ActivitySnapshot => ({
  id: '1',
  workflowId: 'demo',
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
  paused: false,
  stage: 'capabilities' as Snapshot['stage'],
  startedAt: now - 192_000,
  activities: [] as ActivitySnapshot[],
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
      { ...ask, status: 'running', detail: '' },
      { ...tell, status: 'failed', detail: 'not calibrated' },
      { ...grpo, status: 'running', detail: '' },
    ],
    rollouts: { scored: 2000, broken: 1 },
  } as NonNullable<Snapshot['progress']>,
  children: [
    trains(ask, activity({ heartbeat, heartbeatAt: now - 1000 })),
    trains(grpo, activity({ attempt: 2, lastFailure: 'the trainer is gone', heartbeatAt: now - 65_000 })),
  ] as [Snapshot['children'][number], Snapshot['children'][number]],
});
const trains = (child: typeof ask | typeof grpo, ...activities: ActivitySnapshot[]): Snapshot['children'][number] => ({
  ...child,
  progress: { name: child.name, phase: 'train', round: 1, detail: 'waiting for a gpu slot', paused: false },
  activities,
});
const silent = (over: Partial<Snapshot> = {}): Snapshot => ({ ...campaign(), progress: undefined, ...over });

const frame = (snapshot: Snapshot = campaign(), over: Partial<Parameters<typeof frameLines>[0]> = {}) =>
  frameLines({ snapshot, rates: new Rates(), now, columns: 120, colour: false, ...over });
/** The detail of the first JSON line, about the campaign as a whole. */
const wholeOf = (snapshot: Snapshot) => new Changes().since(snapshot, now)[0]?.detail;

describe('the tree on a terminal', () => {
  const stages = ['✓ rollouts             340 train tasks, base model'];
  const away = '▸   grpo_target (arm)  beginning to train · silent for 1 min · attempt 2 after: the trainer is gone';

  it('is in colour unless NO_COLOR is set', () => {
    const shownWith = (noColor: string) => {
      const replaced = jest.replaceProperty(process, 'env', { ...process.env, NO_COLOR: noColor });
      const text = frame(campaign(), { colour: true }).join();
      replaced.restore();
      return text;
    };
    expect(shownWith('')).toContain('\x1b[');
    expect(shownWith('1')).not.toContain('\x1b[');
  });

  it('shows stages, children with phase, step and reward, and what is wrong', () => {
    expect(frame(campaign(), { link: 'http://localhost:8233/x' })).toEqual([
      'demo · seed 1 · running 3 min 12 s',
      ...stages,
      '✓ selection            ask_for_missing_identifier',
      '▸ capabilities',
      '▸   ask                train · step 12/24 · reward 0.61 · rollouts 20/64',
      '✗   tell               not calibrated',
      away.replace('beginning', 'train · beginning'),
      '· router',
      '· evaluation',
      '  2000 rollouts scored, 1 broken (children not counted)',
      'http://localhost:8233/x',
    ]);
  });

  it('shows stage and children of a campaign whose workers are away, from what the server knows', () => {
    const snapshot = silent();
    for (const child of snapshot.children) delete child.progress;
    expect(frame(snapshot)).toEqual([
      'demo · running 3 min 12 s',
      '✓ rollouts',
      '✓ selection',
      '▸ capabilities',
      '▸   ask                step 12/24 · reward 0.61 · rollouts 20/64',
      away,
      '· router',
      '· evaluation',
      '  no worker answers: `campaign run FILE` starts them',
    ]);
  });

  it('shows what an earlier look knew while the workers are away, and since when', () => {
    const snapshot = silent({ stage: 'router' });
    const known = { snapshot: campaign(), at: now - 60_000 };
    const lines = frame(withKnown(snapshot, known));
    expect(lines).toEqual(expect.arrayContaining([...stages, '✓ capabilities', ...frame().slice(4, 7), '▸ router']));
    expect(lines.at(-1)).toBe(
      '  no worker answers: `campaign run FILE` starts them; finished steps as of 1970-01-01 00:15:40 UTC',
    );
    expect(withKnown({ ...snapshot, runId: 'another' }, known).progress).toBeUndefined();
  });

  it('shows how far rollouts and the analysis are, and how fast', () => {
    const early = campaign();
    Object.assign(early.progress.stages[1]!, { status: 'running', detail: '' });
    const analysis = { kind: 'analysis' as const, title: 'pass 2', done: 30, total: 400 };
    const rollouts = { kind: 'rollouts' as const, title: 'base rollouts', done: 10, total: 340, broken: 1 };
    const rates = new Rates();
    early.activities = [analysis, rollouts].map((one) => activity({ heartbeat: one }));
    frame(early, { rates });
    early.activities = [
      activity({ heartbeat: { ...analysis, done: 50, characters: 4210 } }),
      activity({ heartbeat: { ...rollouts, done: 20 } }),
    ];
    expect(frame(early, { rates, now: now + 2000 })).toContain(
      '▸ selection            pass 2 50/400 · 10.0/s · base rollouts 20/340 · 1 broken · 5.0/s · 35 s left · 4.2 kB of replies…',
    );
    // How many there are is not known yet.
    early.activities = [activity({ heartbeat: { ...rollouts, done: 0, total: 0, broken: 0 } })];
    expect(frame(early)).toContain('▸ selection            base rollouts');
  });

  it('shows what needs a person, and attempts that the workflow counts', () => {
    const troubled = campaign();
    const away = { type: 'PolicyServerUnavailable', reason: 'connect ECONNREFUSED' };
    const trouble = { title: 'ask: held out at step 4', since: now - 2_400_000, nextAt: now };
    const need = { what: away.type, since: trouble.since, text: `ask: ${trouble.title}: ${away.reason}` };
    Object.assign(troubled, { attention: away.type });
    troubled.progress.need = need;
    troubled.children[0].progress!.troubles = [{ ...trouble, ...away, retry: 'outside', needsPerson: true }];
    const died = { retry: 'own', type: 'TrainerDied', reason: 'out of memory' } as const;
    troubled.children[1].progress!.troubles = [
      { ...trouble, ...died, nextAt: now + 3500, attempt: { number: 3, of: 14 } },
      { ...trouble, retry: 'preempted', type: 'WorkerDied', reason: 'killed' },
    ];
    troubled.children[1].activities = [];
    const lines = frame(troubled, { columns: 140 });
    const text =
      'needs attention since 40 min: PolicyServerUnavailable: ask: ask: held out at step 4: connect ECONNREFUSED';
    expect(lines.filter((line) => line.includes('ECONNREFUSED'))).toEqual([`  ${text}`]);
    expect(lines[6]).toMatch(/ train · attempt 3 of 14 in 4 s: out of memory · again after: its worker was lost$/);
    expect(wholeOf(troubled)).toBe(text);
    // Without a worker the server's word is all there is.
    expect(frame({ ...troubled, progress: undefined })).toContain('  needs attention: PolicyServerUnavailable');
  });

  it('shows what waits for approval, since when, how to approve it, and what the calibration came to', () => {
    const waiting = { of: 'a', since: now - 2.5 * 3_600_000, reminded: false };
    const asking = campaign();
    Object.assign(asking.progress.stages[1]!, { status: 'running' });
    asking.progress.waiting = { what: 'capabilities', names: ['ask_a', 'tell_b', 'find_c'], ...waiting };
    const environment = { what: 'environment', names: ['ask'], round: 2, ...waiting, reminded: true };
    Object.assign(asking.children[0].progress!, { phase: 'approval', waiting: environment, calibration: '18%' });
    const lines = frame(asking, { columns: 140 });
    expect(lines[2]).toMatch(
      / waits for approval of 3 capabilities since 2 h: campaign approve demo · ask_for_missing_identifier$/,
    );
    expect(lines[4]).toMatch(
      / reminder: waits for approval of its environment, round 2, since 2 h: campaign approve demo ask · calibration 18%$/,
    );
  });

  it('tells code that fails from workers that are away', () => {
    const failing = silent({
      failing: [
        { workflowId: 'demo', failures: 4 },
        { workflowId: ask.workflowId, failures: 2 },
      ],
    });
    expect(frame(failing).slice(-2)).toEqual([
      '  the code of workflow demo failed 4 times in a row: logs/control-worker.log says why',
      '  the code of workflow demo/capability/ask failed 2 times in a row: logs/control-worker.log says why',
    ]);
  });

  it.each<[string, Snapshot]>([
    ['demo · seed 1 · paused 3 min 12 s', { ...campaign(), paused: true }],
    ['demo · paused 3 min 12 s', silent({ paused: true })],
    ['demo · was paused 3 min 0 s', silent({ paused: true, asOf: now - 12_000 })],
    // One that was ended while it was paused is not paused any more.
    ['demo · terminated 3 min 12 s', silent({ paused: true, status: 'TERMINATED', closedAt: now })],
  ])('begins with how it stands: %s', (head, snapshot) => expect(frame(snapshot)[0]).toBe(head));

  it('says how a campaign ended and why, and of what rollouts broke, within the width; nothing of it runs any more', () => {
    const failure = 'the model folder models/base has no config.json; ' + 'name another one '.repeat(4);
    const message = 'environment process "python3 library.py": reset: episode: "31" is the id of one that is open';
    const causes = [{ type: 'BadEnvironment', message, count: 20, task: 'train-5' }];
    const failed: Snapshot = { ...campaign(), status: 'FAILED', closedAt: now - 72_000, failure };
    // What a batch that failed has played is told by why it failed.
    failed.progress!.rollouts = { scored: 0, broken: 0 };
    expect(wholeOf(failed)).not.toContain('rollouts scored');
    failed.progress!.rollouts = { scored: 300, broken: 22, causes };
    const lines = frame(failed, { columns: 60 });
    expect(lines[0]).toBe('demo · seed 1 · failed 2 min 0 s');
    expect(lines.filter((line) => line.startsWith('▸'))).toEqual([]);
    expect(lines.find((line) => line.includes(' capabilities'))).toMatch(/^✗ capabilities +not finished$/);
    const text = lines.map((line) => line.trim()).join(' ');
    expect(text).toContain(`22 rollouts broke: 20 BadEnvironment, as at task train-5: ${message}; 2 of other causes`);
    expect(text).toContain(`why: ${failure.trim()}`);
    expect(lines.filter((line) => line.length > 60)).toEqual([]);
    expect(wholeOf({ ...failed, status: 'RUNNING', failure: undefined })).toContain('as at task train-5: environment');
  });

  it.each([
    ['prepare', '▸ preparation   checking the parts and splitting the tasks', 1],
    ['writeReport', '▸ report        writing the report', 6],
  ])('shows what is done outside the stages: %s', (type, line, at) => {
    const outside = campaign();
    for (const stage of outside.progress.stages)
      Object.assign(stage, { status: type === 'prepare' ? 'waiting' : 'done', detail: '' });
    outside.progress.children = [];
    const activities = [activity({ type, startedAt: now })];
    expect(frame({ ...outside, children: [], activities })[at]).toBe(line);
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

  it('measures wide scripts as the terminal shows them', () => {
    const wide = campaign();
    Object.assign(wide.progress.children[1]!, { name: '確認する', detail: '校正に失敗しました'.repeat(8) });
    const line = frame(wide, { columns: 40 })[5]!;
    expect(line).toMatch(/^✗ {3}確認する +校正.*…$/);
    expect([...line].reduce((columns, one) => columns + (one > '\u3000' ? 2 : 1), 0)).toBeLessThanOrEqual(40);
  });
});

describe('drawing in place', () => {
  const long = 'complete_all_requested_actions';
  const narrow = campaign();
  const calibrates = { kind: 'capability', name: `tell_${long}` };
  const heartbeat = { kind: 'rollouts', title: `tell_${long}: calibration, round 1`, done: 223, total: 384, broken: 0 };
  Object.assign(narrow.children[0], { name: long });
  Object.assign(narrow.progress.children[0]!, { name: long });
  Object.assign(narrow.progress.children[2]!, calibrates);
  Object.assign(narrow.children[1].progress!, { phase: 'calibrate' });
  const activities = [activity({ type: 'rollOut', heartbeat: heartbeat as never, heartbeatAt: now })];
  Object.assign(narrow.children[1], { ...calibrates, activities });
  const link = `http://127.0.0.1:8233/namespaces/default/workflows/${long}-seed-7`;

  it.each([
    [100, /^▸ {3}LONG {7}train · step 12\/24 · reward 0\.61 · rollouts 20\/64$/, / 223\/384$/],
    [80, /^▸ {3}LONG {5}step 12\/24 · reward 0\.61 · rollouts 20\/64$/, / 223\/384 · calibrate…$/],
    [60, /^▸ {3}complete…ions {2}step 12\/24 · reward 0\.61 · rollouts 20\/64$/, / 223\/384 · calibrate…$/],
    [44, /^▸ {3}comple…ons {2}step 12\/24 · reward 0\.61 · …$/, / 223\/384$/],
    [30, /^▸ {3}comple…ons {2}step 12\/24 · …$/, / 223\/384 \w+…$/],
  ] as const)('of %i columns names are cut before counts, and no line is too wide', (columns, trained, calibrated) => {
    const lines = frame(narrow, { columns });
    expect(lines[4]?.replace(long, 'LONG')).toMatch(trained);
    expect(lines[6]).toMatch(calibrated);
    expect(lines.filter((line) => line.length > columns)).toEqual([]);
  });

  const on = (columns: number, rows: number) => {
    const screen = new Screen(columns, rows);
    return { screen, tree: new LiveTree(screen as unknown as NodeJS.WriteStream) };
  };

  it.each([
    [60, 24],
    [60, 8],
    [200, 24],
  ])('of %i columns and %i rows there is one headline after many redraws, and the link is whole', (columns, rows) => {
    const { screen, tree } = on(columns, rows);
    for (let second = 0; second < 40; second++)
      tree.draw(frame(narrow, { now: now + 1000 * second, columns, link, colour: true }));
    const headlines = screen.text().filter((line) => line.startsWith('demo · seed 1 · running'));
    expect(headlines).toEqual(rows === 8 ? [] : ['demo · seed 1 · running 3 min 51 s']);
    expect(screen.text().join('').split(link)).toHaveLength(2);
  });

  it('leaves what is printed, and nothing of the tree in it, also where a key was pressed', () => {
    const { screen, tree } = on(60, 24);
    tree.draw(['one', 'two']);
    screen.write('^C');
    tree.print('stopping: \x1b[2Jworkers finish\r');
    tree.draw(['three']);
    tree.draw(['four']);
    expect(screen.text()).toEqual(['stopping: workers finish', 'four', '']);
  });
});

it('code that fails counts from the first look, and from a success on', () => {
  const check = failureLimit(3);
  const look = (campaign: number, arm: number) => () =>
    check({
      name: 'demo',
      failing: [
        { workflowId: 'demo', failures: campaign },
        { workflowId: grpo.workflowId, failures: arm },
      ].filter(({ failures }) => failures > 0),
    });
  for (const [campaign, arm] of [
    [12, 0],
    [14, 2],
    [0, 0],
    [2, 1],
  ] as const)
    expect(look(campaign, arm)).not.toThrow();
  expect(look(2, 3)).toThrow('the code of workflow demo/arm/grpo_target failed 3 times in a row: logs/control-worker');
  expect(look(3, 0)).toThrow('the code of workflow demo failed 3 times in a row: logs/control-worker.log says');
});

describe('JSON lines', () => {
  it('tell what changes, once: a new status at once, a growing detail now and then', () => {
    const changes = new Changes();
    const first = changes.since(campaign(), now);
    expect(first.map(({ stage, child, status }) => [stage, child, status].filter(Boolean).join(' '))).toEqual([
      'campaign running',
      'rollouts done',
      'selection done',
      'capabilities running',
      'capabilities ask running',
      'capabilities tell failed',
      'capabilities grpo_target (arm) running',
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

describe('an activity says what it does or waits for', () => {
  const heartbeat = { kind: 'train', step: 3, steps: 24, reward: 0.5, rollouts: { done: 2, total: 64 } } as const;
  const waits = { state: 'scheduled', queue: 'gpu-p1' } as const;
  const tried = { ...waits, attempt: 2, heartbeat, heartbeatAt: now - 900_000, lastFailure: 'its worker was lost' };
  const later = { ...waits, attempt: 3, nextAttemptAt: now + 39_500, lastFailure: '429' };
  const again = { attempt: 2, heartbeat, heartbeatAt: now - 900_000 };
  const label = { type: 'label', startedAt: now };
  const starting = { ...heartbeat, waitsFor: 'the trainer to start' };
  const updating = { ...heartbeat, rollouts: { done: 64, total: 64 }, update: { done: 5, total: 40 } };

  it.each<[string, ...Partial<ActivitySnapshot>[]]>([
    ['waits for a gpu slot (gpu-p1)', waits],
    ['waits for a rollouts worker (rollouts-my-pool)', { ...waits, type: 'rollOut', queue: 'rollouts-my-pool' }],
    ['waits for a control worker (control-a1)', { ...waits, type: 'label', queue: 'control-a1' }],
    // An old server does not tell the queue; an activity of another version has none that is known.
    ['waits for a gpu slot', { ...waits, queue: undefined }],
    ['waits for a worker', { ...waits, type: 'gone', queue: undefined }],
    ['beginning to train on conversations', { type: 'fineTune' }],
    // One that waits is never silent, and shows no rollouts of the attempt before.
    ['step 3/24 · reward 0.50 · waits for a gpu slot (gpu-p1) · attempt 2 after: its worker was lost', tried],
    ['attempt 3 in 40 s: 429', later],
    ['waits for a gpu slot (gpu-p1) · attempt 3 after: 429', { ...later, nextAttemptAt: now - 1 }],
    ['waits for the language model: 429, again in 40 s', { ...later, lastFailureType: 'LanguageModelUnavailable' }],
    // One that has begun is silent from its own beginning.
    ['step 3/24 · reward 0.50 · rollouts 2/64 · attempt 2', { ...again, startedAt: now - 30_000 }],
    ['step 3/24 · reward 0.50 · rollouts 2/64 · silent for 3 min · attempt 2', { ...again, startedAt: now - 180_000 }],
    ['step 3/24 · reward 0.50 · rollouts 2/64 · waits for the trainer to start', { heartbeat: starting }],
    ['step 3/24 · reward 0.50 · update 5/40', { heartbeat: updating }],
    ['step 3/24 · reward 0.50 · rollouts 2/64 · stopping', { state: 'cancelling', heartbeat }],
    ['2 times: labeling trajectories, beginning rollouts', label, label, { type: 'rollOut', startedAt: now }],
  ])('%s', (text, ...activities) => {
    const of = { activities: activities.map(activity), owner: 'demo', rates: new Rates(), now };
    expect(activityTexts(of).join(', ')).toBe(text);
  });
});

describe('reasons are in words:', () => {
  const create = (options: Parameters<typeof ApplicationFailure.create>[0]) => ApplicationFailure.create(options);
  const cause = new Error('ECONNREFUSED');
  it.each([
    ['its worker was lost', undefined, new TimeoutFailure('activity Heartbeat timeout', undefined, 'HEARTBEAT')],
    ['its worker was lost', 'WorkerDied', create({ type: 'WorkerDied', message: 'worker 12 died' })],
    ['its worker was stopped', 'WorkerShutdown', create({ type: 'WorkerShutdown', message: 'x' })],
    ['it took longer than its limit', undefined, new TimeoutFailure('x', undefined, 'START_TO_CLOSE')],
    [
      'no tasks',
      'BadInput',
      new Error('child failed', { cause: create({ type: 'BadInput', message: 'no tasks', cause }) }),
    ],
    ['ECONNREFUSED', undefined, new Error('outer', { cause })],
  ])('%s', (reason, type, error) => {
    expect(reasonOf(error)).toEqual({ reason, ...(type && { type }) });
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

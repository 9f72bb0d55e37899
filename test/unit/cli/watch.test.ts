import { ApplicationFailure, TimeoutFailure } from '@temporalio/common';
import { activityTexts, Rates } from '../../../src/cli/watch/tree';
import { Changes, durationText, frameLines, LiveTree } from '../../../src/cli/watch/output';
import { FailureCount } from '../../../src/cli/watch/follow';
import { type ActivitySnapshot, reasonInWords, type Snapshot, withKnown } from '../../../src/cli/watch/snapshot';
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
const snapshot: Snapshot = {
  name: 'demo',
  runId: 'run',
  status: 'RUNNING',
  paused: false,
  stage: 'capabilities',
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
      kind: 'capability',
      name: 'ask',
      progress: { name: 'ask', phase: 'train', round: 1, detail: 'waiting for a gpu slot', paused: false },
      activities: [
        activity({
          heartbeat: { kind: 'train', step: 12, steps: 24, reward: 0.6123, rollouts: { done: 20, total: 64 } },
          heartbeatAt: now - 1000,
        }),
      ],
    },
    {
      workflowId: 'demo/arm/grpo_target',
      kind: 'arm',
      name: 'grpo_target',
      progress: { name: 'grpo_target', phase: 'train', round: 1, detail: '', paused: false },
      activities: [activity({ attempt: 2, lastFailure: 'the trainer is gone', heartbeatAt: now - 65_000 })],
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
      '▸   grpo_target (arm)  train · beginning to train · silent for 1 min · attempt 2 after: the trainer is gone',
      '· router',
      '· evaluation',
      '  2000 rollouts scored, 1 broken (children not counted)',
      'http://localhost:8233/x',
    ]);
  });

  it('shows how far rollouts and the analysis are', () => {
    const early = structuredClone(snapshot);
    const stage = early.progress?.stages[1];
    if (stage) Object.assign(stage, { status: 'running', detail: '' });
    const analysis = { kind: 'analysis' as const, title: 'pass 2', done: 30, total: 400 };
    const rollouts = { kind: 'rollouts' as const, title: 'base rollouts', done: 10, total: 340, broken: 1 };
    early.activities = [analysis, rollouts].map((heartbeat) => activity({ heartbeat }));
    const rates = new Rates();
    frame({ snapshot: early, rates });
    early.activities[0] = activity({ heartbeat: { ...analysis, done: 50, characters: 4210 } });
    expect(frame({ snapshot: early, rates, now: now + 2000 })).toContain(
      '▸ selection            pass 2 50/400 · 10.0/s · 4.2 kB of replies · base rollouts 10/340 · 1 broken',
    );
  });

  it('shows what the calibration of a child came to', () => {
    const trained = structuredClone(snapshot);
    const [child] = trained.children;
    if (child?.progress) child.progress.calibration = '18%, with hints 21%';
    expect(frame({ snapshot: trained, columns: 140 })[4]).toMatch(
      /^▸ {3}ask +train · step 12\/24 .* · calibration 18%, with hints 21%$/,
    );
  });

  it('shows what needs a person, and attempts that the workflow counts', () => {
    const troubled = structuredClone(snapshot);
    const trouble = { title: 'ask: held out at step 4', since: now - 2_400_000, nextAt: now };
    const away = { type: 'PolicyServerUnavailable', reason: 'connect ECONNREFUSED' };
    troubled.attention = away.type;
    troubled.progress!.need = { what: away.type, since: trouble.since, text: `ask: ${trouble.title}: ${away.reason}` };
    const [ask, grpo] = troubled.children;
    ask!.progress!.troubles = [{ ...trouble, ...away, retry: 'outside', needsPerson: true }];
    const died = { retry: 'own', type: 'TrainerDied', reason: 'out of memory' } as const;
    grpo!.progress!.troubles = [
      { ...trouble, ...died, nextAt: now + 3500, attempt: { number: 3, of: 14 } },
      { ...trouble, retry: 'preempted', type: 'WorkerDied', reason: 'killed' },
    ];
    grpo!.activities = [];
    const lines = frame({ snapshot: troubled, columns: 140 });
    expect(lines).toContain(
      '  needs attention since 40 min: PolicyServerUnavailable: ask: ask: held out at step 4: connect ECONNREFUSED',
    );
    expect(lines.join('\n')).toMatch(
      /grpo_target \(arm\) +train · attempt 3 of 14 in 4 s: out of memory · again after: its worker was lost/,
    );
    expect(lines.filter((line) => line.includes('ECONNREFUSED'))).toHaveLength(1);
    const [line] = new Changes(new Rates()).since(troubled, now);
    expect(line).toMatchObject({ stage: 'campaign', detail: expect.stringMatching(/^needs attention since 40 min: /) });
    // Without a worker the server's word is all there is.
    delete troubled.progress;
    expect(frame({ snapshot: troubled })).toContain('  needs attention: PolicyServerUnavailable');
  });

  it('shows what waits for approval, since when and how to approve it', () => {
    const waiting = { of: 'a', since: now - 2.5 * 3_600_000, reminded: false };
    const asked = structuredClone(snapshot);
    const stage = asked.progress?.stages[1];
    if (stage && asked.progress) {
      stage.status = 'running';
      asked.progress.waiting = { what: 'capabilities', names: ['ask_a', 'tell_b', 'find_c'], ...waiting };
    }
    expect(frame({ snapshot: asked, columns: 140 })[2]).toBe(
      '▸ selection            waits for approval of 3 capabilities since 2 h: campaign approve demo · ask_for_missing_identifier',
    );
    const child = asked.children[0]?.progress;
    if (child)
      Object.assign(child, {
        phase: 'approval',
        waiting: { what: 'environment', names: ['ask'], round: 2, ...waiting, reminded: true },
      });
    expect(frame({ snapshot: asked, columns: 140 })[4]).toBe(
      '▸   ask                reminder: waits for approval of its environment, round 2, since 2 h: campaign approve demo ask',
    );
  });

  it('says of what rollouts broke, within the width', () => {
    const broken = structuredClone(snapshot);
    const message =
      'environment process "python3 library.py": reset: episode: "31" is the id of an episode that is still open';
    const causes = [{ type: 'BadEnvironment', message, count: 20, task: 'train-5' }];
    broken.progress!.rollouts = { scored: 300, broken: 22, causes };
    const lines = frame({ snapshot: broken, columns: 60 });
    expect(lines.filter((line) => line.length > 60)).toEqual([]);
    const text = lines.map((line) => line.trim()).join(' ');
    expect(text).toContain(`22 rollouts broke: 20 BadEnvironment, as at task train-5: ${message}; 2 of other causes`);
    const [whole] = new Changes(new Rates()).since(broken, now);
    expect(whole).toMatchObject({
      stage: 'campaign',
      detail: expect.stringContaining('as at task train-5: environment'),
    });
  });

  it('is never wider than the terminal', () => {
    for (const line of frame({ columns: 40 })) expect(line.length).toBeLessThanOrEqual(40);
  });

  it('shows stage and children of a campaign whose workers are away, from what the server knows', () => {
    const silent = structuredClone(snapshot);
    delete silent.progress;
    for (const child of silent.children) delete child.progress;
    expect(frame({ snapshot: silent })).toEqual([
      'demo · running 3m12s',
      '✓ rollouts',
      '✓ selection',
      '▸ capabilities',
      '▸   ask                step 12/24 · reward 0.61 · rollouts 20/64',
      '▸   grpo_target (arm)  beginning to train · silent for 1 min · attempt 2 after: the trainer is gone',
      '· router',
      '· evaluation',
      '  no worker answers: `campaign run FILE` starts them',
    ]);
  });

  it('shows what an earlier look knew while the workers are away, and since when', () => {
    const silent = structuredClone(snapshot);
    delete silent.progress;
    silent.stage = 'router';
    const known = withKnown(silent, { snapshot, at: now - 60_000 });
    expect(frame({ snapshot: known })).toEqual([
      'demo · seed 1 · running 3m12s',
      '✓ rollouts             340 train tasks, base model',
      '✓ selection            ask_for_missing_identifier',
      '✓ capabilities',
      ...frame().slice(4, 7),
      '▸ router',
      '· evaluation',
      '  2000 rollouts scored, 1 broken (children not counted)',
      '  no worker answers: `campaign run FILE` starts them; finished steps as of 1970-01-01 00:15:40 UTC',
    ]);
    expect(withKnown({ ...silent, runId: 'another' }, { snapshot, at: now }).progress).toBeUndefined();
  });

  it('tells code that fails from workers that are away', () => {
    const failing = structuredClone(snapshot);
    delete failing.progress;
    failing.failures = 4;
    Object.assign(failing.children[0] ?? {}, { failures: 2 });
    expect(frame({ snapshot: failing }).slice(-2)).toEqual([
      '  the code of workflow demo failed 4 times in a row: logs/control-worker.log says why',
      '  the code of workflow demo/capability/ask failed 2 times in a row: logs/control-worker.log says why',
    ]);
    expect(frame({ snapshot: { ...failing, status: 'TERMINATED' } }).join()).not.toContain('the code of');
  });

  it('shows no control characters of what others say', () => {
    const words = 'died:\u001b[2J\u001b[31m Traceback\u001b]0;owned\u0007\u009b2J\r\u202e';
    const rude = structuredClone({ ...snapshot, status: 'FAILED', failure: words });
    Object.assign(rude.progress?.stages[0] ?? {}, { detail: words });
    Object.assign(rude.children[1]?.activities[0] ?? {}, { lastFailure: words });
    const text = frame({ snapshot: rude }).join('\n');
    expect(text.match(/died: Traceback/g)).toHaveLength(3);
    expect(text.match(/[^\P{Cc}\n]|\u202e/gu)).toBeNull();
  });

  it('says paused, also when no worker answers', () => {
    const paused: Snapshot = { ...snapshot, paused: true };
    expect(frame({ snapshot: paused })[0]).toBe('demo · seed 1 · paused 3m12s');
    delete paused.progress;
    expect(frame({ snapshot: paused })[0]).toBe('demo · paused 3m12s');
    expect(frame({ snapshot: { ...paused, asOf: now - 12_000 } })[0]).toBe('demo · was paused 3m00s');
    // One that was ended while it was paused is not paused any more.
    expect(frame({ snapshot: { ...paused, status: 'TERMINATED', closedAt: now } })[0]).toBe('demo · terminated 3m12s');
  });

  it('says how a campaign ended and why, within the width; nothing of it runs any more', () => {
    const failure = 'the model folder models/base has no config.json; ' + 'name another one '.repeat(4);
    const failed: Snapshot = { ...snapshot, status: 'FAILED', closedAt: now - 72_000, failure };
    const lines = frame({ snapshot: failed, columns: 60 });
    expect(lines[0]).toBe('demo · seed 1 · failed 2m00s');
    expect(lines.filter((line) => line.startsWith('▸'))).toEqual([]);
    expect(lines.find((line) => line.includes(' capabilities'))).toMatch(/^✗ capabilities +not finished$/);
    const why = lines.slice(lines.findIndex((line) => line.startsWith('  why: ')));
    expect(why.join(' ').replace(/\s+/g, ' ').trim()).toBe(`why: ${failure.trim()}`);
    expect(why.length).toBeGreaterThan(1);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(60);
  });

  it.each([
    ['prepare', '▸ preparation   checking the parts and splitting the tasks', 1],
    ['writeReport', '▸ report        writing the report', 6],
  ])('shows what is done outside the stages: %s', (type, line, at) => {
    const outside = structuredClone(snapshot);
    for (const stage of outside.progress?.stages ?? [])
      Object.assign(stage, { status: type === 'prepare' ? 'waiting' : 'done', detail: '' });
    Object.assign(outside.progress ?? {}, { children: [] });
    Object.assign(outside, { children: [], activities: [activity({ type, startedAt: now })] });
    expect(frame({ snapshot: outside })[at]).toBe(line);
  });

  it('is drawn over what was drawn before, and not over what was printed', () => {
    let text = '';
    const out = { rows: 24, write: (chunk: string) => (text += chunk) } as unknown as NodeJS.WriteStream;
    const tree = new LiveTree(out);
    tree.draw(['one', 'two']);
    tree.draw(['three', 'four']);
    tree.print('a \x1b[2Jnote\r');
    tree.draw(['five']);
    expect(text.replaceAll('\r', '').replaceAll('\x1b[0J', '|')).toBe(
      '|one\ntwo\n\x1b[2A|three\nfour\n\x1b[2A|a note\n|five\n',
    );
  });
});

describe('on a narrow terminal', () => {
  const long = 'complete_all_requested_actions';
  const narrow = structuredClone(snapshot);
  const [trains, calibrates] = narrow.children;
  Object.assign(trains!, { name: long });
  Object.assign(narrow.progress!.children[0]!, { name: long });
  Object.assign(calibrates!, { kind: 'capability', name: `tell_${long}` });
  Object.assign(narrow.progress!.children[2]!, { kind: 'capability', name: `tell_${long}` });
  Object.assign(calibrates!.progress!, { phase: 'calibrate' });
  const title = `tell_${long}: calibration, round 1`;
  const calibration = { kind: 'rollouts' as const, title, done: 223, total: 384, broken: 0 };
  calibrates!.activities = [activity({ type: 'rollOut', heartbeat: calibration, heartbeatAt: now })];
  const link = `http://127.0.0.1:8233/namespaces/default/workflows/${long}-seed-7`;

  it.each([
    [
      100,
      /^▸ {3}complete_all_requested_actions {7}train · step 12\/24 · reward 0\.61 · rollouts 20\/64$/,
      / 223\/384$/,
    ],
    [
      80,
      /^▸ {3}complete_all_requested_actions {5}step 12\/24 · reward 0\.61 · rollouts 20\/64$/,
      / 223\/384 · calibrate…$/,
    ],
    [60, /^▸ {3}complete…ions {2}step 12\/24 · reward 0\.61 · rollouts 20\/64$/, / 223\/384 · calibrate…$/],
    [44, /^▸ {3}comple…ons {2}step 12\/24 · reward 0\.61 · …$/, / 223\/384$/],
    [30, /^▸ {3}comple…ons {2}step 12\/24 · …$/, / cali…1 223\/384$/],
  ] as const)('of %i columns names are cut before counts, and no line is too wide', (columns, trained, calibrated) => {
    const lines = frame({ snapshot: narrow, columns });
    expect(lines[4]).toMatch(trained);
    expect(lines[6]).toMatch(calibrated);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
  });

  it.each([
    [60, 24],
    [80, 24],
    [60, 8],
    [200, 24],
  ])('of %i columns and %i rows there is one headline after many redraws, and the link is whole', (columns, rows) => {
    const screen = new Screen(columns, rows);
    const tree = new LiveTree(screen as unknown as NodeJS.WriteStream);
    for (let second = 0; second < 40; second++)
      tree.draw(frameLines({ snapshot: narrow, rates: new Rates(), now: now + 1000 * second, columns, link }));
    const headlines = screen.text().filter((line) => line.startsWith('demo · seed 1 · running'));
    expect(headlines).toEqual(rows === 8 ? [] : ['demo · seed 1 · running 3m51s']);
    expect(screen.text().join('').split(link)).toHaveLength(2);
  });

  it('of which a key was pressed, as Ctrl-C is, nothing of the tree is left in what is said then', () => {
    const screen = new Screen(60, 24);
    const tree = new LiveTree(screen as unknown as NodeJS.WriteStream);
    tree.draw(frame({ snapshot: narrow, columns: 60 }));
    screen.write('^C');
    tree.print('stopping: workers finish what they do');
    screen.write('^C');
    tree.print('stopped');
    expect(screen.text()).toEqual(['stopping: workers finish what they do', 'stopped', '']);
  });
});

describe('code that fails', () => {
  it('counts from the first look, and from a success on', () => {
    const count = new FailureCount();
    const look = (failures?: number) => () =>
      count.check({ ...snapshot, children: [], ...(failures === undefined ? {} : { failures }) }, 3);
    for (const failures of [12, 14, undefined, 2]) expect(look(failures)).not.toThrow();
    expect(look(3)).toThrow(/^the code of workflow demo failed 3 times in a row: .* the same command starts it anew/);
  });

  it('may be that of a child', () => {
    const count = new FailureCount();
    const look = (failures: number) => () =>
      count.check({ ...snapshot, children: [{ ...childRef, failures, activities: [] }] }, 3);
    const childRef = { workflowId: 'demo/arm/a', kind: 'arm' as const, name: 'a' };
    expect(look(5)).not.toThrow();
    expect(look(8)).toThrow('the code of workflow demo/arm/a failed 8 times');
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

describe('an activity says what it does or waits for:', () => {
  const text = (over: Partial<ActivitySnapshot>, more: Partial<ActivitySnapshot>[] = []) =>
    activityTexts({
      activities: [over, ...more].map((one) => activity(one)),
      owner: 'demo',
      rates: new Rates(),
      now,
    });
  const scheduled = { state: 'scheduled' as const };
  const heartbeat = { kind: 'train' as const, step: 3, steps: 24, reward: 0.5, rollouts: { done: 2, total: 64 } };
  const lost = 'its worker was lost';

  it.each([
    ['gpu-p1', 'waits for a gpu slot (gpu-p1)'],
    ['rollouts-my-pool', 'waits for a rollouts worker (rollouts-my-pool)'],
    ['control-a1', 'waits for a control worker (control-a1)'],
    [undefined, 'waits for a worker'],
  ])('one that no worker has taken from %s', (queue, expected) => {
    expect(text({ ...scheduled, type: 'trainGate', ...(queue !== undefined && { queue }) })).toEqual([expected]);
  });

  it('each in words: a table that the activities themselves demand', () => {
    expect(text({ type: 'fineTune' })).toEqual(['beginning to train on conversations']);
    expect(text({ type: 'recallDecision' })).toEqual(['looking for an earlier decision']);
  });

  it('one that waits is never silent, and shows no rollouts of the attempt before', () => {
    const waits = {
      ...scheduled,
      queue: 'gpu-p1',
      attempt: 2,
      heartbeat,
      heartbeatAt: now - 900_000,
      lastFailure: lost,
    };
    expect(text(waits)).toEqual([`step 3/24 · reward 0.50 · waits for a gpu slot (gpu-p1) · attempt 2 after: ${lost}`]);
  });

  it('one that is tried again later', () => {
    const later = { ...scheduled, queue: 'gpu-p1', attempt: 3, nextAttemptAt: now + 12_000, lastFailure: 'no room' };
    expect(text(later)).toEqual(['attempt 3 in 12 s: no room']);
    expect(text({ ...later, nextAttemptAt: now - 1 })).toEqual([
      'waits for a gpu slot (gpu-p1) · attempt 3 after: no room',
    ]);
  });

  it('one that has begun is silent from its own beginning', () => {
    const begun = { attempt: 2, heartbeat, heartbeatAt: now - 900_000, startedAt: now - 30_000 };
    expect(text(begun)).toEqual(['step 3/24 · reward 0.50 · rollouts 2/64 · attempt 2']);
    expect(text({ ...begun, startedAt: now - 180_000 })[0]).toContain('silent for 3 min');
  });

  it('one without a heartbeat shows its step; equal ones are counted', () => {
    const label = { type: 'label', startedAt: now };
    expect(text(label, [label, { type: 'rollOut', startedAt: now }])).toEqual([
      '2 times: labeling trajectories',
      'beginning rollouts',
    ]);
  });

  it('a language model that has no capacity, and when it is asked again', () => {
    const one = {
      type: 'label',
      state: 'scheduled',
      attempt: 2,
      nextAttemptAt: now + 39_500,
      lastFailure: '429',
    } as const;
    expect(text({ ...one, lastFailureType: 'LanguageModelUnavailable' })).toEqual([
      'waits for the language model: 429, again in 40 s',
    ]);
    expect(text({ ...one, lastFailureType: 'LanguageModelFailed' })).toEqual(['attempt 2 in 40 s: 429']);
  });

  it('a learner that waits, and one that is stopping', () => {
    expect(text({ heartbeat: { ...heartbeat, waitsFor: 'the trainer to start' } })[0]).toMatch(
      /waits for the trainer to start$/,
    );
    expect(text({ state: 'cancelling', heartbeat })[0]).toMatch(/stopping$/);
  });
});

describe('reasons are in words:', () => {
  const create = (options: Parameters<typeof ApplicationFailure.create>[0]) => ApplicationFailure.create(options);
  const cause = new Error('ECONNREFUSED');
  it.each([
    ['its worker was lost', new TimeoutFailure('activity Heartbeat timeout', undefined, 'HEARTBEAT')],
    ['its worker was lost', create({ type: 'WorkerDied', message: 'worker 12 died' })],
    ['its worker was stopped', create({ type: 'WorkerShutdown', message: 'x' })],
    ['it took longer than its limit', new TimeoutFailure('x', undefined, 'START_TO_CLOSE')],
    ['no answer at :1', create({ type: 'PolicyServerUnavailable', message: 'no answer at :1', cause })],
    ['no tasks', new Error('child failed', { cause: create({ type: 'BadInput', message: 'no tasks', cause }) })],
    ['ECONNREFUSED', new Error('outer', { cause })],
  ])('%s', (words, error) => {
    expect(reasonInWords(error)).toBe(words);
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

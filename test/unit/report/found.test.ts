/** What a report takes from discovery, labeling passes, modules and the ledger, for an analyst and a synthesizer that ask a language model. */
import type { PayingRole } from '../../../src/domain/endpoints';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { digest } from '../../../src/artifacts/hash';
import { calibrate, type SynthesisRound } from '../../../src/domain/calibration';
import { campaignSchema } from '../../../src/domain/campaign';
import type { Discovery, FailureOrigin, LabelPass } from '../../../src/domain/capability';
import type { Message } from '../../../src/domain/messages';
import type { Report } from '../../../src/report/model';
import type { CampaignRecord } from '../../../src/domain/results';
import type { Rollout, RolloutSummary } from '../../../src/domain/rollout';
import { buildReport } from '../../../src/report/build/report';
import { lineage } from '../../../src/report/lineage';
import { completeReport } from '../../../src/report/render';
import { ROLLOUTS_MEDIA_TYPE } from '../../../src/rollout/read';
import { outcomeOf, summarise } from '../../../src/domain/outcomes';
import { scoredRollout } from '../../support/scored-rollout';
import { temporaryFolder } from '../../support/temporary-folder';

const home = temporaryFolder();
const store = openFolderStore(home);

const capability = 'ask_for_missing_identifiers';
const other = 'tell_what_is_asked';

const put = (body: string, mediaType = 'application/json') =>
  store.put({ key: digest(body), producer: 'test', inputs: [], mediaType, body });
const json = (value: unknown) => put(JSON.stringify(value));

const conversation: Message[] = [
  { role: 'system', content: 'Help.' },
  { role: 'user', content: 'Cancel it.' },
  { role: 'assistant', content: 'I look.', toolCalls: [{ id: 'c', name: 'find', arguments: { id: '#W1' } }] },
  { role: 'tool', toolCallId: 'c', content: 'x'.repeat(9000) },
  { role: 'assistant', content: 'Done.' },
];
const rolloutOf = (name: string, reward: number, messages: Message[] = conversation): Rollout =>
  ({ ...scoredRollout({ name, task: `task ${name}`, reward }), messages }) as Rollout;

async function batch(title: string, records: Rollout[]): Promise<RolloutSummary> {
  const body = records.map((record) => `${JSON.stringify(record)}\n`).join('');
  const ref = await store.put({
    key: title,
    producer: 'rollouts: x',
    inputs: [],
    mediaType: ROLLOUTS_MEDIA_TYPE,
    body,
  });
  return { ...summarise(records.map(outcomeOf)), ref, purpose: 'base_rollouts', title, seconds: 1 };
}

const base = [rolloutOf('a', 0), rolloutOf('b', 0), rolloutOf('c', 0), rolloutOf('d', 1)];
const [a, b, c, d] = base.map(({ key }) => key) as [string, string, string, string];

const discovery: Discovery = {
  candidates: [
    {
      name: capability,
      definition: 'Asks.',
      examples: [a],
      citations: [
        { rollout: a, message: 2, says: 'invents #W1' },
        { rollout: d, message: 4, says: 'the last one' },
        { rollout: 'f'.repeat(64), message: 0, says: 'of another batch' },
        { rollout: a, message: 77, says: 'beyond the end' },
      ],
    },
    { name: other, definition: 'Tells.', examples: [] },
  ],
  faults: [{ of: 'environment', what: 'The look-up times out.', citations: [{ rollout: c, message: 3, says: 'cut' }] }],
};

/** `lacking` of the failed trajectories a, b, c; what is at fault is NA. */
function pass(attempt: number, lacking: string[], more: Pick<LabelPass, 'reasons' | 'failures'> = {}): LabelPass {
  const na = Object.entries(more.failures ?? {}).flatMap(([id, { of }]) => (of === 'agent' ? [] : [id]));
  const failed = [a, b, c].filter((id) => !na.includes(id));
  const labels = (lacks: string[]) => ({
    lacking_failed: failed.filter((id) => lacks.includes(id)),
    present_failed: failed.filter((id) => !lacks.includes(id)),
    na_failed: na,
    lacking_passed: [],
    present_passed: [d],
    na_passed: [],
  });
  return {
    attempt,
    totals: { total_failed: 3, total_passed: 1 },
    labels: { [capability]: labels(lacking), [other]: labels([]) },
    ...more,
  };
}
const because = (id: string, message: number | undefined, reason: string) => ({
  [capability]: { [id]: { reason, ...(message !== undefined && { message }) } },
});
const fault = (of: FailureOrigin['of'], reason: string, message = 3) => ({ [c]: { of, message, reason } });
const passes = [
  pass(0, [a, b], { reasons: because(a, 4, 'says done'), failures: fault('environment', 'is down', 1) }),
  pass(1, [a], { reasons: because(a, 2, 'makes #W1 up'), failures: fault('user', 'is rude', 1) }),
  pass(2, [a], { reasons: because(a, 2, 'never asked'), failures: fault('environment', 'times out') }),
  pass(3, [], { failures: fault('environment', 'is slow') }),
  pass(4, [], { failures: fault('agent', 'never asked', 1) }),
  pass(5, []),
];

const statistics = { coverage: { mean: 0.5, std: 0 }, delta: { mean: 0.5, std: 0 }, passes: 4 };

async function recordOf(o: { discovery: Discovery; passes: LabelPass[]; rounds?: SynthesisRound[] }) {
  const [selected] = o.discovery.candidates;
  const record: CampaignRecord = {
    campaign: campaignSchema.parse({
      name: 'found',
      target: { kind: 'builtin', name: 'shop' },
      baseModel: { path: 'models/base' },
      budget: { tokens: 1000 },
    }),
    workflowId: 'found',
    startedAt: 0,
    finishedAt: 1000,
    stageSeconds: {},
    stoppedAfter: 'capabilities',
    prepared: {
      base: 'base@1',
      pool: 'pool',
      target: { name: 'shop', version: '1' },
      plan: await json({}),
      tasks: { train: 4, validation: 0, router: 0, test: 0 },
    },
    baseRollouts: await batch('base', base),
    selection: {
      candidates: await json(o.discovery),
      labels: await Promise.all(o.passes.map((one) => json(one))),
      failedPasses: [],
      selection: await json({
        passes: 4,
        capabilities: [
          { name: capability, votes: 9, selected: true, evidence: [a, b], ...statistics },
          { name: other, votes: 0, selected: false, evidence: [a], ...statistics },
        ],
      }),
      selected: [{ candidate: selected!, votes: 9 }],
    },
    capabilities: [{ name: capability, workflowId: 'w', status: 'not_calibrated', rounds: o.rounds ?? [] }],
  };
  return record;
}

const built = async (record: CampaignRecord, spent: Parameters<typeof buildReport>[0]['spent'] = []): Promise<Report> =>
  completeReport(await buildReport({ store, record, tasks: [], spent }));

describe('selection', () => {
  let report: Report;
  beforeAll(async () => {
    report = await built(await recordOf({ discovery, passes }));
  });
  const evidence = () => report.selection!.evidence!;

  test('a cited step stands there with its trajectory and the messages around it', () => {
    const [first, last] = evidence()[0]!.citations;
    expect(first).toMatchObject({ rollout: a, task: 'task a', attempt: 0, outcome: 'failed', message: 2 });
    expect(first!.context).toEqual([
      { message: 1, role: 'user', text: 'Cancel it.' },
      { message: 2, role: 'assistant', text: 'I look.\ncalls find({"id":"#W1"})' },
      { message: 3, role: 'tool', text: 'x'.repeat(8000), missing: 1000 },
    ]);
    expect(last).toMatchObject({ outcome: 'passed', context: [{ message: 3 }, { message: 4, text: 'Done.' }] });
  });

  test('what cannot be found is named, and nothing is made up for it', () => {
    const [, , elsewhere, beyond] = evidence()[0]!.citations;
    expect(elsewhere).toEqual({ rollout: 'f'.repeat(64), message: 0, says: 'of another batch', context: [] });
    expect(beyond).toMatchObject({ task: 'task a', message: 77, context: [] });
  });

  test('a LACKING trajectory has the message that most passes cite, and what the first of them says', () => {
    expect(evidence().map(({ capability: name }) => name)).toEqual([capability]);
    const { lacking } = evidence()[0]!;
    // b is LACKING in one pass, which gives no reason for it.
    expect(lacking).toHaveLength(1);
    expect(lacking![0]).toMatchObject({
      rollout: a,
      says: 'makes #W1 up',
      message: 2,
      lacking: 3,
      passes: 6,
      citing: 2,
    });
    expect(lacking![0]!.context.map(({ message }) => message)).toEqual([1, 2, 3]);
  });

  test('a reason without a message is one', async () => {
    const whole = await built(
      await recordOf({ discovery, passes: [pass(0, [b], { reasons: because(b, undefined, 'all of it') })] }),
    );
    expect(whole.selection!.evidence![0]!.lacking).toEqual([
      expect.objectContaining({ rollout: b, says: 'all of it', citing: 0, context: [] }),
    ]);
  });

  test('faults: what was found, and the failed trajectories that passes put down to it more often than to the agent', () => {
    const { found, trajectories } = report.selection!.faults!;
    expect(found).toMatchObject([{ of: 'environment', citations: [{ rollout: c, task: 'task c', says: 'cut' }] }]);
    expect(trajectories).toMatchObject({ environment: { value: 1, n: 3, unit: 'count' }, user: { value: 0, n: 3 } });
    expect(trajectories!.examples).toEqual([
      {
        rollout: c,
        task: 'task c',
        attempt: 0,
        outcome: 'failed',
        of: 'environment',
        reason: 'times out',
        votes: 3,
        passes: 5,
      },
    ]);
    expect(report.verdict.map(({ text }) => text)).toContain(
      '1 of 3 failed trajectories are put down to the environment, 0 to the simulated user.',
    );
  });

  test('half of the passes is no majority', async () => {
    const [user, agent] = [fault('user', 'is rude'), fault('agent', 'never asked')];
    const two = [pass(0, [], { failures: user }), pass(1, [], { failures: agent })];
    const { faults } = (await built(await recordOf({ discovery, passes: two }))).selection!;
    expect(faults!.trajectories).toMatchObject({ user: { value: 0 }, examples: [] });
  });

  test('agreement is a figure over trajectories that leads back to the passes; low agreement is said', async () => {
    const { agreement } = report.selection!.candidates[0]!;
    expect(agreement).toMatchObject({ id: `selection.${capability}.agreement`, n: 4 });
    expect(agreement!.value).toBeGreaterThan(0);
    expect(agreement!.value).toBeLessThan(0.667);
    expect(report.verdict.map(({ text }) => text).join('\n')).toMatch(
      /agree little on ask_for_missing_identifiers \(0\.\d\d, n 4\)/,
    );
    const { root } = await lineage({ store, report, start: agreement!.id });
    expect(root.inputs).toHaveLength(passes.length);
  });

  test('an analyst that gives neither steps nor reasons has nothing of it', async () => {
    const bare = {
      candidates: discovery.candidates.map(({ name, definition, examples }) => ({ name, definition, examples })),
      faults: [],
    };
    const { selection } = await built(await recordOf({ discovery: bare, passes: [pass(0, [a]), pass(1, [b])] }));
    const { evidence: steps, faults, candidates } = selection!;
    expect([steps, faults, candidates[0]!.agreement]).toEqual([undefined, undefined, undefined]);
  });
});

describe('versions', () => {
  const moduleOf = (n: number, source: string) => put(`${source}\n// Rationale: reason ${n}\n`, 'text/javascript');
  const played = (title: string, rewards: number[], hinted = false) =>
    batch(
      title,
      rewards.map(
        (reward, i) => ({ ...rolloutOf(`${title} ${i}`, reward), ...(hinted && { hinted: true as const }) }) as Rollout,
      ),
    );

  test('each has its reason, its size, what changed, and what was found of it', async () => {
    const [plain, hinted] = [await played('plain', [0, 0]), await played('hinted', [0, 1, 1], true)];
    const bands = campaignSchema.shape.calibration.parse(undefined);
    const judged = (...rewards: number[]) =>
      calibrate({ groups: rewards.map((one) => ({ rewards: [one] })), bands, confidence: 0.95 });
    const rounds: SynthesisRound[] = [
      {
        round: 1,
        module: await moduleOf(1, 'const a = 1;\nconst b = 1;'),
        selfTest: { passed: false, findings: ['no'], hints: true },
      },
      {
        round: 2,
        module: await moduleOf(2, 'const a = 2;\nconst b = 1;'),
        selfTest: { passed: true, findings: [] },
        calibration: judged(0, 0),
        calibrationRollouts: plain,
        aided: [{ hints: 0.5, calibration: judged(0, 1, 1), calibrationRollouts: hinted }],
        decision: { kind: 'reject', reason: 'too narrow', by: 'person', at: 1 },
      },
    ];
    const report = await built(await recordOf({ discovery, passes, rounds }));
    const [{ rounds: reported, episodes, calibration: kept }] = report.capabilities as [
      NonNullable<Report['capabilities']>[number],
    ];
    expect(reported).toMatchObject([
      { version: { module: rounds[0]!.module, lines: 2, rationale: 'reason 1' }, selfTest: { hints: true } },
      {
        version: {
          rationale: 'reason 2',
          changes: {
            added: 1,
            removed: 1,
            lines: ['@@ -1,2 +1,2 @@', '-const a = 1;', '+const a = 2;', ' const b = 1;'],
          },
        },
        decision: 'rejected: too narrow',
        aided: [{ hints: 0.5, successRate: { value: 2 / 3 } }],
      },
    ]);
    expect(reported![0]!.version.changes).toBeUndefined();
    // The last calibration is that with hints; without them nothing succeeds.
    expect(kept).toEqual(reported![1]!.aided![0]);
    expect(reported![1]!.calibration!.successRate.value).toBe(0);
    expect(episodes).toMatchObject([
      { outcome: 'failed', reward: 0, hinted: true },
      { outcome: 'passed', reward: 1, hinted: true },
    ]);
    expect(episodes![0]!.messages).toHaveLength(conversation.length);
    // Both calibrations have been rolled out.
    expect(report.rollouts!.byPurpose.find(({ purpose }) => purpose === 'calibration')!.scored.value).toBe(5);
  });
});

describe('what language models cost', () => {
  const spent = (step: string, dollars?: number, role: PayingRole = 'analyst') => ({
    role,
    step,
    requests: 2,
    promptTokens: 300,
    cachedTokens: 100,
    completionTokens: 50,
    ...(dollars !== undefined && { dollars }),
  });

  test('is summed up by role and step, beside the budget', async () => {
    const record = await recordOf({ discovery, passes });
    const ofUser = spent('held_out', 0.5, 'user');
    const { cost } = await built(record, [spent('discovery', 0.25), spent('labels'), ofUser]);
    expect(cost!.languageModel).toEqual({
      roles: [
        {
          ...{ role: 'analyst', requests: 4, promptTokens: 600, cachedTokens: 200, completionTokens: 100 },
          ...{ dollars: 0.25, unpriced: 2 },
        },
        { role: 'user', requests: 2, promptTokens: 300, cachedTokens: 100, completionTokens: 50, dollars: 0.5 },
      ],
      steps: [spent('discovery', 0.25), spent('labels'), ofUser],
      total: {
        ...{ step: 'all', requests: 6, promptTokens: 900, cachedTokens: 300, completionTokens: 150 },
        ...{ dollars: 0.75, unpriced: 2 },
      },
      budget: { tokens: 1000 },
    });
    const partly = { ...spent('discovery', 0.25), unpriced: 1 };
    const total = { dollars: 0.75, unpriced: 1 };
    expect((await built(record, [partly, spent('labels', 0.5)])).cost!.languageModel!.total).toMatchObject(total);
    expect((await built(record, [spent('labels')])).cost!.languageModel!.total.dollars).toBeUndefined();
  });

  test('is absent where nothing was asked', async () => {
    expect((await built(await recordOf({ discovery, passes }))).cost!.languageModel).toBeUndefined();
  });
});

/** What a report takes from base rollouts, discovery, labeling passes, modules and the ledger, where a language model is asked. */
import { type SynthesisRound } from '../../../src/domain/calibration';
import type { Discovery, FailureOrigin, LabelPass } from '../../../src/domain/capability';
import type { PayingRole } from '../../../src/domain/endpoints';
import type { Message } from '../../../src/domain/messages';
import type { CampaignRecord } from '../../../src/domain/results';
import type { Rollout, ScoredRollout } from '../../../src/domain/rollout';
import { buildReport } from '../../../src/report/build/report';
import type { Report } from '../../../src/report/model';
import { completeReport } from '../../../src/report/render';
import { brokenRollout, scoredRollout } from '../../support/scored-rollout';
import { campaignStore, startedCampaign } from './stored';

const { store, json, batch } = campaignStore();

const capability = 'ask_for_missing_identifiers';
const other = 'tell_what_is_asked';

const conversation: Message[] = [
  { role: 'system', content: 'Help.' },
  { role: 'user', content: 'Cancel it.' },
  { role: 'assistant', content: 'I look.', toolCalls: [{ id: 'c', name: 'find', arguments: { id: '#W1' } }] },
  { role: 'tool', toolCallId: 'c', content: 'x'.repeat(9000) },
  { role: 'assistant', content: 'Done.' },
];
const rolloutOf = (task: string, reward: number, more: Partial<ScoredRollout> = {}): Rollout => ({
  ...(scoredRollout({ name: task, task, reward }) as ScoredRollout),
  messages: conversation,
  ...more,
});

type BuiltOf = Parameters<typeof buildReport>[0];
const built = async (record: CampaignRecord, more: Partial<BuiltOf> = {}): Promise<Report> =>
  completeReport(await buildReport({ store, record, tasks: [], spent: [], ...more }));

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

async function recordOf(o: {
  discovery: Discovery;
  passes: LabelPass[];
  rounds?: SynthesisRound[];
}): Promise<CampaignRecord> {
  const [selected] = o.discovery.candidates;
  const statistics = { coverage: { mean: 0.5, std: 0 }, delta: { mean: 0.5, std: 0 }, passes: 4 };
  return {
    ...startedCampaign(await batch('base_rollouts', 'base', base), { budget: { tokens: 1000 } }),
    stoppedAfter: 'capabilities',
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
    capabilities: [{ name: capability, workflowId: 'w', status: 'not_trained', rounds: o.rounds ?? [] }],
  };
}

test('the base model: success rate with interval and n, and mean reward', async () => {
  const baseOf = async (rollouts: Rollout[]) => {
    const baseRollouts = await batch('base_rollouts', JSON.stringify(rollouts), rollouts);
    return (await built({ ...startedCampaign(baseRollouts), stoppedAfter: 'rollouts' })).base!;
  };
  expect(await baseOf([0, 0.5, 1, 1].map((reward, n) => rolloutOf(`t${n}`, reward)))).toMatchObject({
    successRate: { value: 0.5, n: 4, interval: { level: 0.95, method: 'wilson' } },
    meanReward: { value: 0.625, n: 4 },
  });
  expect(await baseOf([brokenRollout('t0', 'BadEnvironment', 'no')])).toMatchObject({
    successRate: { value: null, n: 0 },
  });
});

describe('selection', () => {
  let report: Report;
  beforeAll(async () => {
    report = await built(await recordOf({ discovery, passes }));
  });

  test('a cited step has its trajectory and the messages around it; nothing is made up for what cannot be found', () => {
    const [first, last, elsewhere, beyond] = report.selection!.candidates[0]!.citations;
    expect(first).toMatchObject({ rollout: a, task: 'a', attempt: 0, outcome: 'failed', message: 2 });
    expect(first!.context).toEqual([
      { message: 1, role: 'user', text: 'Cancel it.' },
      { message: 2, role: 'assistant', text: 'I look.\ncalls find({"id":"#W1"})' },
      { message: 3, role: 'tool', text: 'x'.repeat(8000), missing: 1000 },
    ]);
    expect(last).toMatchObject({ outcome: 'passed', context: [{ message: 3 }, { message: 4, text: 'Done.' }] });
    expect(elsewhere).toEqual({ rollout: 'f'.repeat(64), message: 0, says: 'of another batch', context: [] });
    expect(beyond).toMatchObject({ task: 'a', message: 77, context: [] });
  });

  test('a LACKING trajectory has the message that most passes cite, and what the first of them says; without any, examples show their end', async () => {
    const stepsOf = ({ selection }: Report) => selection!.candidates[0]!.citations;
    // b is LACKING in one pass, which gives no reason for it.
    const [lacking, ...more] = stepsOf(report).slice(4);
    expect([lacking!.rollout, lacking!.says, lacking!.message, more.length]).toEqual([a, 'makes #W1 up', 2, 0]);
    expect(lacking).toMatchObject({
      votes: 'lacking in 3 of 6 passes',
      context: [1, 2, 3].map((message) => ({ message })),
    });
    const whole = [pass(0, [b], { reasons: because(b, undefined, 'all of it') })];
    const without = await built(await recordOf({ discovery, passes: whole }));
    expect(stepsOf(without).at(-1)).toMatchObject({ rollout: b, says: 'all of it', context: [] });
    const { name, definition } = discovery.candidates[0]!;
    const plain = { candidates: [{ name, definition, examples: [a] }], faults: [] };
    const ends = stepsOf(await built(await recordOf({ discovery: plain, passes: [] })));
    expect(ends).toMatchObject([
      { rollout: a, message: 4 },
      { rollout: b, message: 4 },
    ]);
  });

  test('faults: what was found, and the failed trajectories that passes put down to it more often than to the agent', async () => {
    const { found, counts, examples } = report.selection!.faults!;
    expect(found).toMatchObject([{ of: 'environment', citations: [{ rollout: c, task: 'c', says: 'cut' }] }]);
    expect(counts).toMatchObject({ environment: { value: 1, n: 3, unit: 'count' }, user: { value: 0, n: 3 } });
    expect(examples).toMatchObject([
      { rollout: c, task: 'c', says: 'times out', votes: 'environment in 3 of 5 passes' },
    ]);
    // Half of the passes is no majority.
    const [user, agent] = [fault('user', 'is rude'), fault('agent', 'never asked')];
    const two = [pass(0, [], { failures: user }), pass(1, [], { failures: agent })];
    const { faults } = (await built(await recordOf({ discovery, passes: two }))).selection!;
    expect(faults).toMatchObject({ counts: { user: { value: 0 } }, examples: [] });
  });
});

test('what language models cost is summed up beside the budget, and absent where nothing was asked', async () => {
  const spent = (step: string, dollars?: number, role: PayingRole = 'analyst') => ({
    ...{ role, step, requests: 2, promptTokens: 300, cachedTokens: 100, completionTokens: 50 },
    ...(dollars !== undefined && { dollars }),
  });
  const record = await recordOf({ discovery, passes });
  const costOf = async (...all: BuiltOf['spent']) => (await built(record, { spent: all })).cost!.languageModel;
  const ofUser = spent('held_out', 0.5, 'user');
  expect(await costOf(spent('discovery', 0.25), spent('labels'), ofUser)).toEqual({
    steps: [spent('discovery', 0.25), spent('labels'), ofUser],
    total: {
      ...{ step: 'all', requests: 6, promptTokens: 900, cachedTokens: 300, completionTokens: 150 },
      ...{ dollars: 0.75, unpriced: 2 },
    },
    budget: { tokens: 1000 },
  });
  const partly = { ...spent('discovery', 0.25), unpriced: 1 };
  expect((await costOf(partly, spent('labels', 0.5)))!.total).toMatchObject({ dollars: 0.75, unpriced: 1 });
  expect((await costOf(spent('labels')))!.total.dollars).toBeUndefined();
  expect(await costOf()).toBeUndefined();
});

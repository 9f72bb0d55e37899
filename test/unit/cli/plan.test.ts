/** The plan's arithmetic against finished campaigns, what language models will be asked, and where its rates come from. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openFolderStore } from '../../../src/store/open-store';
import { loadCampaign } from '../../../src/cli/campaign-file';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { targetTasks } from '../../../src/cli/checks/target';
import { countWork, estimate, measured, ratesOf, trajectoryTokens } from '../../../src/cli/plan/estimate';
import { plannedQuestions } from '../../../src/cli/plan/language-models';
import { plannedDisk } from '../../../src/cli/plan/plan';
import { homeAt } from '../../../src/cli/project';
import type { Campaign } from '../../../src/domain/campaign';
import { type Purpose, purposes } from '../../../src/domain/rollout';
import { registry, shopParts } from '../../support/kinds';
import type { Report } from '../../../src/report/model';
import { completeReport } from '../../../src/report/render';
import { campaign } from '../../support/campaign-command';
import { shopLines } from '../../support/campaign-run';
import { figure, reportFixture } from '../../support/report-fixture';
import { scoredRollout } from '../../support/scored-rollout';

// What a plan says of disk comes from the trainer's Python, which starts torch: seconds each time, and more on busy cores.
jest.setTimeout(180_000);

const shipped = (name: string) =>
  loadCampaign({ file: join(resolve(__dirname, '../../..'), 'campaigns', `${name}.yaml`) });
const demo = shipped('demo');
const home = homeAt(mkdtempSync(join(tmpdir(), 'plan-')));
const trajectory = { low: 500, high: 1000, basis: 'assumed', source: 'test' } as const;
const tasks = { train: 340, validation: 60, router: 200, test: 200 };
const workOf = (campaign: Campaign, capabilities: number) => countWork({ campaign, tasks, capabilities });
const rangesOf = (...o: Parameters<typeof workOf>) =>
  Object.fromEntries(workOf(...o).purposes.map(({ purpose, rollouts }) => [purpose, rollouts]));
const countsOf = (...o: Parameters<typeof workOf>) =>
  Object.fromEntries(Object.entries(rangesOf(...o)).map(([purpose, { low }]) => [purpose, low]));

/** Rollouts of a finished demo. */
const demoPurposes: Record<Purpose, number> = {
  base_rollouts: 340,
  calibration: 1152,
  training: 6144,
  held_out: 1032,
  outcome_matrix: 1600,
  test: 2000,
};

/** A finished demo campaign, as far as rates go. */
function demoReport(): Report {
  const draft = reportFixture();
  draft.rollouts!.byPurpose = purposes.map((purpose, i) => {
    const n = demoPurposes[purpose];
    const tokens = (name: string, value: number) =>
      figure(`rollouts.p${i}.${name}`, value * n, n, { unit: 'tokens' as const });
    return {
      purpose,
      scored: figure(`rollouts.p${i}.scored`, n, n, { unit: 'count' }),
      broken: figure(`rollouts.p${i}.broken`, 0, n, { unit: 'count' }),
      promptTokens: tokens('prompt_tokens', 300),
      completionTokens: tokens('completion_tokens', 20),
    };
  });
  draft.cost!.secondsPerRollout = { rollout: 0.0095, training: 0.03 };
  return completeReport(draft);
}

describe('rollouts', () => {
  const published = { training: 2 * 5120 };
  test.each<[string, Campaign, number, object]>([
    // At least: where no pair of adapters gains, three fewer policies are tested.
    ['of the finished demo, one calibration round each', demo, 3, { ...demoPurposes, test: 2000 - 600 }],
    ['of the base alone without a capability', demo, 0, { base_rollouts: 340, outcome_matrix: 200, test: 400 }],
    ['of the published set-up, and as many on the target', shipped('tau2-qwen3-30b'), 4, published],
    ['of its other benchmark', shipped('toolsandbox-qwen3-30b'), 4, published],
  ])('%s', (_what, campaign, capabilities, counts) => {
    expect(countsOf(campaign, capabilities)).toMatchObject(counts);
    if (capabilities === 0) expect(countsOf(campaign, capabilities)).toEqual(counts);
  });

  test('of the demo are at most as many as it made', () => expect(rangesOf(demo, 3)['test']!.high).toBe(2000));

  // That the workflows play what the project's own say, test/workflows/plan.test.ts tells.
  test.each<[string, Campaign['arms'], number[]]>([
    [
      'two of one kind',
      [{ kind: 'environments' }, { kind: 'environments', name: 'again' }],
      [2 * 4608, 2 * 9 * 60, 2 * 200, 0],
    ],
  ])('of the arms: %s adds what its kind says, within the budget of trace', (_what, arms, added) => {
    const planned = (some: Campaign['arms']) =>
      countsOf({ ...demo, training: { ...demo.training, steps: 24 }, arms: some }, 3);
    const [none, all] = [planned([]), planned(arms)];
    expect(none['training']).toBe(4608);
    const columns = ['training', 'held_out', 'test', 'outcome_matrix'];
    expect(columns.map((purpose) => all[purpose]! - none[purpose]!)).toEqual(added);
  });
});

describe('rates', () => {
  test('measured ones go before the file, the file before assumptions; each says where it is from', () => {
    expect([measured(demoReport(), 'training', 'seconds'), measured(demoReport(), 'training', 'promptTokens')]).toEqual(
      [0.03, 300],
    );
    const file = { path: 'rates.yaml', rates: { training: { seconds: 2, promptTokens: 9 } } };
    const stopped = demoReport();
    stopped.rollouts!.byPurpose = stopped.rollouts!.byPurpose.slice(0, 1);
    stopped.cost!.secondsPerRollout = { rollout: 0.019 };
    const rates = ratesOf({ campaign: demo, reports: [stopped], file, gigabytes: 0 });
    const source = 'campaign demo of 2026-01-05';
    expect(rates.rollout.seconds).toEqual({ low: 0.019, high: 0.019, basis: 'measured', source });
    expect(rates.training.seconds).toEqual({ low: 2, high: 2, basis: 'file', source: 'rates.yaml' });
    expect(rates.training.completionTokens).toMatchObject({ basis: 'assumed' });
    for (const kind of Object.values(rates)) for (const rate of Object.values(kind)) expect(rate.source).not.toBe('');
  });

  test('times rollouts are what is planned', () => {
    const rates = ratesOf({ campaign: demo, reports: [demoReport()], gigabytes: 0 });
    const { total } = estimate(demo, workOf(demo, 3), rates);
    expect(total.wallSeconds.low).toBeCloseTo(0.03 * 6144 + 0.0095 * (11_668 - 6144), 1);
    expect(total.promptTokens.low).toBeCloseTo(300 * 11_668);
    expect(total.gpuHours.high).toBe(0);
  });

  test('trajectories are measured in the base rollouts of an earlier campaign', async () => {
    const store = openFolderStore(join(home.root, 'artifacts'));
    const messages = [{ role: 'user', content: 'y'.repeat(4000) }];
    const body = `${JSON.stringify({ ...scoredRollout({ name: 'r', task: 't', reward: 1 }), messages })}\n`;
    const ref = await store.put({ key: 'r', producer: 'rollouts', inputs: [], mediaType: 'application/jsonl', body });
    const draft = reportFixture();
    draft.rollouts!.byPurpose.find(({ purpose }) => purpose === 'base_rollouts')!.scored.from = [ref];
    const found = await trajectoryTokens([completeReport(draft)], home);
    expect(found).toMatchObject({ basis: 'measured', source: expect.stringMatching(/1 base rollouts$/) });
    // A message is shown cut to 300 characters.
    expect(found.low).toBeGreaterThan(75);
    expect(found.low).toBeLessThan(200);
    expect(await trajectoryTokens([], home)).toMatchObject({ basis: 'assumed' });
  });
});

describe('language models', () => {
  const price = { input: 1, cachedInput: 0.1, output: 10 };
  const endpoint = { url: 'http://127.0.0.1:2/v1', model: 'm' };
  const model = (more: object = {}) => ({ kind: 'llm', ...endpoint, ...more });
  const description = {
    name: 'x',
    version: '1',
    policy: 'p'.repeat(3998),
    tools: [],
    maxSteps: 9,
    hasReference: false,
  };
  /** With so many rollouts of a purpose. */
  const planOf = (
    parts: object,
    counts: Partial<Record<Purpose, [number, number]>> = { base_rollouts: [400, 400] },
  ) => {
    const campaign = campaignFileSchema(registry).parse({
      name: 'x',
      ...shopParts,
      baseModel: { path: '/base' },
      selection: { passes: 10, maxCandidates: 10 },
      calibration: { maxRounds: 5 },
      ...parts,
    });
    const purposesOf = Object.entries(counts).map(([purpose, [low, high]]) => ({
      ...({ stage: 'rollouts', kind: 'rollout', purpose: purpose as Purpose } as const),
      rollouts: { low, high },
    }));
    const work = { capabilities: 3, arms: [], purposes: purposesOf };
    return plannedQuestions({ campaign, work, description, trajectory });
  };

  test.each<[object, Record<string, [number, number]>]>([
    // 200,000 to 400,000 tokens of trajectories in chunks of 60,000; at most 40 trajectories a labeling question.
    [{ analyst: model() }, { discovery: [4 + 1, 1.25 * 8], labels: [100, 125] }],
    [
      { analyst: model({ chunkTokens: 1e6, contextTokens: 2e6, labelsPerChunk: 400 }) },
      { discovery: [1, 1], labels: [10, 13] },
    ],
    [{ analyst: model({ contextTokens: 40_000, maxTokens: 10_000 }) }, { discovery: [10, 23], labels: [100, 213] }],
    // At most five rounds of each.
    [{ synthesizer: model() }, { environments: [3 * 2, Math.round(15 * 2 * 1.25)] }],
    [{ synthesizer: model({ attacks: 0 }) }, { environments: [3, 19] }],
    [{}, {}],
  ])('are asked by chunks, passes and rounds, a quarter more to mend their answer: %j', (parts, requests) => {
    const { questions } = planOf(parts);
    const asked = questions.map((one) => [one.step, [one.requests.low, one.requests.high]]);
    expect(Object.fromEntries(asked)).toEqual(requests);
  });

  test('read the target and all trajectories in every pass; passes come from the cache at best', () => {
    const { questions, total } = planOf({ analyst: model({ price }) });
    const { promptTokens, completionTokens, dollars } = questions.find(({ step }) => step === 'labels')!;
    expect(promptTokens.low).toBe(10 * (400 * 500 + 10 * (2000 + 1000)));
    expect(completionTokens).toEqual({ low: 10 * 400 * 5 * 30, high: 1.25 * 10 * 400 * 10 * 90 });
    expect(dollars!.low).toBeCloseTo((promptTokens.low * (0.1 * 1 + 0.9 * 0.1) + completionTokens.low * 10) / 1e6);
    expect(dollars!.high).toBeCloseTo((promptTokens.high * 1 + completionTokens.high * 10) / 1e6);
    expect(total.dollars!.low).toBeCloseTo(questions.reduce((sum, one) => sum + one.dollars!.low, 0));
  });

  test('play users and judges in the rollouts that are planned', () => {
    const target = { kind: 'process', command: ['x'], user: { ...endpoint, price }, judge: endpoint };
    const { questions } = planOf(
      { target, arms: [] },
      { base_rollouts: [100, 100], test: [50, 60], calibration: [900, 900], held_out: [40, 40] },
    );
    expect(questions).toMatchObject([
      { field: 'target.user', step: 'rollouts', requests: { low: 150 * 2, high: 200 * 12 } },
      { field: 'target.judge', step: 'rollouts', requests: { low: 150, high: 200 * 5 } },
    ]);
    expect(questions[0]!.dollars!.low).toBeCloseTo((300 * 800 * 1 + 300 * 15 * 10) / 1e6, 9);
    expect(questions[1]).not.toHaveProperty('dollars');
  });

  test.each<[object, string]>([
    [{}, 'no budget'],
    [{ budget: { tokens: 1e9 } }, 'budget.tokens'],
    [{ budget: { dollars: 12 } }, 'budget.dollars'],
  ])('are held against %j', (more, field) => {
    expect(planOf({ analyst: model({ price }), ...more }).budget).toContain(field);
  });

  test('without one there is no word of a budget', () => expect(planOf({})).not.toHaveProperty('budget'));
});

test('on the disk every step has its adapter twice, every checkpoint three times; of the trained modules alone', async () => {
  const work = workOf(demo, 3);
  const disk = (targetModules: string[], path = demo.baseModel.path) => {
    const training = { ...demo.training, lora: { ...demo.training.lora, targetModules } };
    const campaign = { ...demo, training, baseModel: { path } };
    return plannedDisk({ campaign, work, home: join(home.root, 'there/later') });
  };
  const { groupsPerStep, groupSize, checkpointEvery, lora } = demo.training;
  const steps = demoPurposes.training / groupsPerStep / groupSize;
  // In two layers with attention, and in all four.
  const adapterBytes = (2 * (128 + 128) + 4 * (464 + 128)) * lora.r * 4;
  const found = await disk(['q_proj', 'w2']);
  expect(found).toMatchObject({ adapterBytes, bytes: adapterBytes * (2 * steps + (3 * steps) / checkpointEvery) });
  expect(found!.freeBytes).toBeGreaterThan(0);
  expect(await disk(['gate_proj'])).toBeUndefined();
  expect(await disk(['q_proj'], join(home.root, 'nowhere'))).toBeUndefined();
});

test('a target that is not there leaves the file’s counts; one whose tasks are wrong, or fewer than are skipped, is refused', async () => {
  const command = [process.execPath, '-e', 'process.exit(3)'];
  const { tasks: counts } = await targetTasks({ ...demo, target: { kind: 'process', command } }, home);
  expect(counts).toEqual(tasks);
  const agent = { kind: 'agent', command: ['node', 'mine.mjs'], tasks: join(home.root, 'nowhere.jsonl') };
  await expect(targetTasks({ ...demo, target: agent }, home)).rejects.toThrow(/^target\.tasks: /);
  const smoke = { train: 120, validation: 12, router: 30, test: 30 };
  expect((await targetTasks(shipped('smoke'), home)).tasks).toEqual(smoke);
  const skipping = { ...demo, evaluation: { ...demo.evaluation, skip: 100_000 } };
  await expect(targetTasks(skipping, home)).rejects.toThrow(/^evaluation\.skip /);
});

test('the command fails for what the analyst needs and the target lacks, and for a mistake in a rates file', async () => {
  const run = async (...words: string[]) =>
    // The plan needs no look at the base model, which takes seconds.
    campaign(['--home', home.root, 'plan', ...words], { env: { CAMPAIGN_PYTHON: '/no/python' } });
  const ledger = `{ kind: process, command: [${process.execPath}, ${resolve('test/support/ledger.mjs')}, no reference] }`;
  const more = 'training: { groupsPerStep: 1 }\nvalidation: { targetTasks: 2 }';
  const file = join(home.root, 'ledger.yaml');
  writeFileSync(
    file,
    `name: ledger\npreset: demo\n${shopLines(`target:\n${more}`)}target: ${ledger}\nbaseModel: { path: ${resolve('models/base')} }\n${more}\n`,
  );
  const { status, stdout, stderr } = await run(file);
  expect(status).toBe(1);
  for (const line of [/^base rollouts +4$/m, /^error: analyst: /m, /^warning: synthesizer: /m])
    expect(stdout + stderr).toMatch(line);
  const rates = join(home.root, 'rates.yaml');
  writeFileSync(rates, 'rollout: { second: 3 }\n');
  const wrong = await run(resolve('campaigns/demo.yaml'), '--rates', rates);
  expect(wrong).toMatchObject({ status: 1, stderr: expect.stringContaining("'rollout.second'") });
});

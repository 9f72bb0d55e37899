/** The plan's arithmetic against finished campaigns, what language models will be asked, and where its rates come from. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { loadCampaign } from '../../../src/cli/campaign-file';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { targetTasks } from '../../../src/cli/checks/target';
import { countWork, estimate, measured, ratesOf, trajectoryTokens } from '../../../src/cli/plan/estimate';
import { plannedQuestions } from '../../../src/cli/plan/language-models';
import { plannedDisk, planText } from '../../../src/cli/plan/plan';
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

  test.each([
    [0.004, [0.011, 0.011, 0.016, 0.016]],
    [0.538, [0.225, 0.44, 0.475, 0.93]],
  ])('of a base model of %d GB that nothing has measured take so long', (gigabytes, seconds) => {
    const { rollout, training } = ratesOf({ campaign: demo, reports: [], gigabytes });
    const ends = [rollout.seconds, training.seconds].flatMap(({ low, high }) => [low, high]);
    expect(ends).toEqual(seconds.map((value) => expect.closeTo(value, 2) as number));
    // A program for each rollout of the target takes its time too.
    const target = { kind: 'agent', command: ['node', 'mine.mjs'], tasks: 'tasks.jsonl' };
    const started = ratesOf({ campaign: { ...demo, target }, reports: [], gigabytes });
    expect(started.rollout.seconds.low - rollout.seconds.low).toBeCloseTo(0.1, 5);
    expect(started.rollout.seconds.high - rollout.seconds.high).toBeCloseTo(3, 5);
    expect(started.training.seconds.low).toBe(training.seconds.low);
  });

  test('of a larger model assume as long an answer as may be', () => {
    const { completionTokens } = ratesOf({ campaign: demo, reports: [], gigabytes: 0.538 }).rollout;
    expect(completionTokens).toMatchObject({ low: 20, high: demo.rollouts.sampling.maxTokens, basis: 'assumed' });
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

  test.each<[object, RegExp]>([
    [{}, /^no budget: nothing limits/],
    [{ budget: { tokens: 1e9 } }, /^budget\.tokens is 1000000000: enough for all that is planned$/],
    [{ budget: { tokens: 1000 } }, /^budget\.tokens is 1000: less than what is planned; where it is spent/],
    [{ budget: { dollars: 12 } }, /^budget\.dollars is 12: enough for the lower end/],
    [{ budget: { dollars: 5 }, synthesizer: model() }, /^budget\.dollars is 5, and not every model has a price/],
  ])('are held against %j', (more, text) => {
    expect(planOf({ analyst: model({ price }), ...more }).budget).toMatch(text);
  });

  test('without one there is no word of a budget', () => expect(planOf({})).not.toHaveProperty('budget'));
});

describe('the text', () => {
  const campaign = shipped('tau2-qwen3-30b');
  const target = { name: 'tau2-bench', tasks, note: 'target' };
  const work = workOf(campaign, 4);
  const plan = estimate(campaign, work, ratesOf({ campaign, reports: [], gigabytes: 0 }));
  const languageModels = plannedQuestions({ campaign, work, trajectory });
  const textOf = (o: Partial<Parameters<typeof planText>[0]> = {}) =>
    planText({ campaign, target, parts: [], plan, languageModels, ...o });

  test.each([
    /^target\.user: rollouts .* no price$/m,
    /^warning: synthesizer: ends none$/m,
    /^GPUs: \d policy server, \d trainers, held all the time$/m,
    /^arms \(grpo_target\): each is planned with the budget of trace/m,
    /(^ {2}(rollout|training), .*; assumed, .*\n){6}/m,
  ])('says %s', (line) => {
    expect(textOf({ parts: [{ name: 'synthesizer', ok: true, warning: true, detail: 'ends none' }] })).toMatch(line);
  });

  test('says nothing of arms that there are not', () => {
    const text = textOf({ campaign: { ...campaign, arms: [] } });
    expect(text).not.toMatch(/arms \(/);
  });

  test.each([
    [12e9, "\ndisk: 11.0 GB for adapters (19.5 MB; every step's is kept), 12.0 GB are free\n"],
    [9e9, '\nwarning: disk: 11.0 GB for adapters'],
  ])('with %d bytes free warns of too little disk', (freeBytes, line) => {
    expect(textOf({ disk: { adapterBytes: 19.5e6, bytes: 11e9, freeBytes } })).toContain(line);
  });
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
  const { tasks: counts, note } = await targetTasks({ ...demo, target: { kind: 'process', command } }, home);
  expect(counts).toEqual(tasks);
  expect(note).toMatch(/can't be asked for its tasks .*upper limits/);
  const agent = { kind: 'agent', command: ['node', 'mine.mjs'], tasks: join(home.root, 'nowhere.jsonl') };
  await expect(targetTasks({ ...demo, target: agent }, home)).rejects.toThrow(/^target\.tasks: .*nowhere\.jsonl/);
  const smoke = { train: 120, validation: 12, router: 30, test: 30 };
  expect((await targetTasks(shipped('smoke'), home)).tasks).toEqual(smoke);
  const skipping = { ...demo, evaluation: { ...demo.evaluation, skip: 100_000 } };
  await expect(targetTasks(skipping, home)).rejects.toThrow(
    /^evaluation\.skip is 100000, but the target has \d+ test tasks; lower it to \d+ or less$/,
  );
});

describe('the command', () => {
  /** What it prints, on a terminal of so many columns. */
  async function planned(file: string, { columns, more = [] }: { columns?: number; more?: string[] } = {}) {
    // What it is for here needs no look at the base model, which takes seconds.
    const at = { env: { CAMPAIGN_PYTHON: '/no/python' }, ...(columns !== undefined && { columns }) };
    const { status: code, stdout, stderr } = await campaign(['--home', home.root, 'plan', file, ...more], at);
    return { code, text: (stdout + stderr).trimEnd() };
  }
  const fileWith = (name: string, text: string): string => {
    const file = join(home.root, name);
    writeFileSync(file, text);
    return file;
  };
  /** Of the demo's preset, on this target. */
  const campaignOn = (name: string, target: string, more: string): string =>
    fileWith(
      `${name}.yaml`,
      `name: ${name}\npreset: demo\n${shopLines(`target:\n${more}`)}target: ${target}\nbaseModel: { path: ${resolve('models/base')} }\n${more}\n`,
    );
  const demoFile = resolve('campaigns/demo.yaml');

  test('fails for what the analyst needs and the target lacks, and warns of what the synthesizer does', async () => {
    const ledger = `{ kind: process, command: [${process.execPath}, ${resolve('test/support/ledger.mjs')}, no reference] }`;
    const counts = 'training: { groupsPerStep: 1 }\nvalidation: { targetTasks: 2 }';
    const { code, text } = await planned(campaignOn('ledger', ledger, counts));
    expect(code).toBe(1);
    expect(text).toContain('no reference actions, no rules, output schemas of 0 of 2 tools');
    expect(text).toMatch(/^error: analyst: .*reference actions.*; change the field analyst of the campaign file$/m);
    expect(text).toMatch(
      /^warning: synthesizer: capabilities will end not_synthesized and get no adapter; generators: /m,
    );
    expect(text).toMatch(/^base rollouts +4$/m);
  });

  test('takes those tasks that there are, and the capabilities that are given outright', async () => {
    const many = campaignOn('many', '{ kind: shop }', 'rollouts: { tasks: 99999 }');
    expect((await planned(many)).text).toMatch(/^tasks: 340 of 99999 train, 60 validation, 200 router, 200 test$/m);
    const analyst = `analyst: { kind: given, capabilities: ${resolve('test/fixtures/given/tau2-mock.yaml')} }`;
    const { text } = await planned(campaignOn('given', '{ kind: shop }', analyst));
    expect(text).toMatch(/^given: planned for the 1 capability that it is given /);
  });

  test('on a terminal folds sentences, and neither words nor tables', async () => {
    const [{ code, text }, folded] = [await planned(demoFile), await planned(demoFile, { columns: 60 })];
    expect(code).toBe(0);
    expect(text).toMatch(/^demo: planned for 4 capabilities; how many /);
    expect(text).not.toMatch(/^(error|warning): /m);
    const isTable = (line: string) => /\S {2,}\S/.test(line);
    const lines = folded.text.split('\n');
    expect(lines.filter(isTable)).toEqual(text.split('\n').filter(isTable));
    expect(lines.filter((line) => !isTable(line) && line.length > 60)).toEqual([]);
    expect(folded.text.split(/\s+/)).toEqual(text.split(/\s+/));
  });

  test('names the mistake in a rates file on one line', async () => {
    const rates = fileWith('rates.yaml', 'rollout: { second: 3 }\n');
    expect(await planned(demoFile, { more: ['--rates', rates] })).toEqual({
      code: 1,
      text: `campaign: --rates ${rates}: unknown field 'rollout.second'; did you mean 'seconds'?; docs/plan.md has the form`,
    });
  });
});

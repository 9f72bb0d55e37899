/** The plan's arithmetic against finished campaigns, what language models will be asked, and where its rates come from. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fixedPrompt } from '../../../examples/fixed-prompt';
import { openFolderStore } from '../../../src/artifacts/folder-store';
import { loadCampaign } from '../../../src/cli/campaign-file';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { main } from '../../../src/cli/main';
import { targetTasks } from '../../../src/cli/open-target';
import { estimate, plannedRollouts } from '../../../src/cli/plan/estimate';
import { plannedQuestions } from '../../../src/cli/plan/language-models';
import { plannedDisk } from '../../../src/cli/plan/plan';
import { measured, ratesOf, trajectoryTokens } from '../../../src/cli/plan/rates';
import { planText } from '../../../src/cli/plan/text';
import { homeAt } from '../../../src/cli/project';
import type { Campaign } from '../../../src/domain/campaign';
import { type Purpose, purposes } from '../../../src/domain/rollout';
import { registry } from '../../../src/registry';
import type { Report } from '../../../src/report/model';
import { completeReport } from '../../../src/report/render';
import { setColumns } from '../../support/columns';
import { figure, reportFixture } from '../../support/report-fixture';
import { scoredRollout } from '../../support/scored-rollout';

// What a plan says of disk comes from the trainer's Python, which starts torch: seconds each time, and more on busy cores.
jest.setTimeout(180_000);

const shipped = (name: string) =>
  loadCampaign({ file: join(resolve(__dirname, '../../..'), 'campaigns', `${name}.yaml`) });
const home = homeAt(mkdtempSync(join(tmpdir(), 'plan-')));
const trajectory = { low: 500, high: 1000, basis: 'assumed', source: 'test' } as const;
const tasks = { train: 340, validation: 60, router: 200, test: 200 };
const rangesOf = (campaign: Campaign, capabilities: number, kinds = registry) =>
  Object.fromEntries(
    plannedRollouts({ campaign, tasks, capabilities, kinds }).map(({ purpose, rollouts }) => [purpose, rollouts]),
  );
const countsOf = (...o: Parameters<typeof rangesOf>) =>
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
  const count = (id: string, value: number, n = value) => figure(id, value, n, { unit: 'count' });
  draft.rollouts!.byPurpose = purposes
    .map((purpose, i) => [purpose, demoPurposes[purpose], i] as const)
    .map(([purpose, n, i]) => ({
      purpose,
      scored: count(`rollouts.p${i}.scored`, n),
      broken: count(`rollouts.p${i}.broken`, 0, n),
      promptTokens: figure(`rollouts.p${i}.prompt_tokens`, 300 * n, n, { unit: 'tokens' }),
      completionTokens: figure(`rollouts.p${i}.completion_tokens`, 20 * n, n, { unit: 'tokens' }),
    }));
  draft.cost!.secondsPerRollout = { rollout: 0.0095, training: 0.03 };
  return completeReport(draft);
}

describe('rollouts', () => {
  test('are those of the finished demo: three capabilities, one calibration round each', () => {
    // At least: where no pair of adapters gains, three fewer policies are tested.
    expect(countsOf(shipped('demo'), 3)).toEqual({ ...demoPurposes, test: demoPurposes.test - 600 });
    expect(rangesOf(shipped('demo'), 3)['test']!.high).toBe(demoPurposes.test);
  });

  test('of a gate are counted on the router’s and the test’s tasks, where there are adapters to add', () => {
    const demo = shipped('demo');
    const gated = { ...demo, router: { ...demo.router, kind: 'moe_gate' } };
    const more = (capabilities: number) =>
      (['outcome_matrix', 'test'] as const).map(
        (purpose) => countsOf(gated, capabilities)[purpose]! - countsOf(demo, capabilities)[purpose]!,
      );
    expect([more(2), more(1)]).toEqual([
      [200, 200],
      [0, 0],
    ]);
  });

  test('without a selected capability are those of the base alone', () => {
    expect(countsOf(shipped('demo'), 0)).toEqual({ base_rollouts: 340, outcome_matrix: 200, test: 400 });
  });

  test('of the published set-up are 5,120 trainings for four capabilities, and as many on the target', () => {
    for (const name of ['tau2-qwen3-30b', 'toolsandbox-qwen3-30b'])
      expect(countsOf(shipped(name), 4)).toMatchObject({ training: 2 * 5120 });
  });

  test('of a composite are in the upper ends, with the training rollouts of trace as they are', () => {
    const ranges = (share: number, capabilities = 3) =>
      rangesOf({ ...shipped('demo'), composites: { share } }, capabilities);
    const [without, third] = [ranges(0), ranges(1 / 3)];
    for (const [purpose, { low }] of Object.entries(without)) expect(third[purpose]!.low).toBe(low);
    expect(third['training']).toEqual(without['training']);
    const more = (purpose: string) => third[purpose]!.high - without[purpose]!.high;
    // On environments that are there nothing is calibrated; the router's tasks and the test's come once.
    expect(['calibration', 'outcome_matrix', 'test'].map(more)).toEqual([0, 200, 200]);
    // The composite's four iterations and what it starts from on the target; the best and that on the environments' seeds.
    expect(more('held_out')).toBe((3 * 3 - 3 * 4 + 2) * 48 + (3 + 1) * 60);
    expect(ranges(1 / 3, 1)).toEqual(ranges(0, 1));
  });

  test('of each arm are what its kind says, within the budget of trace', () => {
    const demo = shipped('demo');
    demo.training.steps = 24;
    const planned = (arms: Campaign['arms'], kinds = registry) => countsOf({ ...demo, arms }, 3, kinds);
    const none = planned([]);
    /** What an arm adds. */
    const added = (...arms: Campaign['arms']) =>
      ['training', 'held_out', 'test', 'outcome_matrix'].map((purpose) => planned(arms)[purpose]! - none[purpose]!);
    expect(none['training']).toBe(4608);
    const whole = [4608, 9 * 60, 200, 0];
    for (const kind of ['grpo_target', 'grpo_single', 'joint']) expect(added({ kind })).toEqual(whole);
    expect(added({ kind: 'environments', modules: 'x' })).toEqual(whole);
    expect(added({ kind: 'joint' }, { kind: 'joint', name: 'again' })).toEqual(whole.map((n) => 2 * n));
    const foreign = planned([{ kind: 'fixed_prompt' }], { ...registry, arms: [...registry.arms, fixedPrompt] });
    expect([foreign['training'], foreign['outcome_matrix']]).toEqual([none['training'], none['outcome_matrix']! + 200]);
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
    const rates = ratesOf({ campaign: shipped('demo'), reports: [stopped], file, gigabytes: 0 });
    const source = 'campaign demo of 2026-01-05';
    expect(rates.rollout.seconds).toEqual({ low: 0.019, high: 0.019, basis: 'measured', source });
    expect(rates.training.seconds).toEqual({ low: 2, high: 2, basis: 'file', source: 'rates.yaml' });
    expect(rates.training.completionTokens).toMatchObject({ basis: 'assumed' });
    for (const kind of Object.values(rates)) for (const rate of Object.values(kind)) expect(rate.source).not.toBe('');
  });

  test('what nothing has measured takes longer with a larger base model', () => {
    const seconds = (gigabytes: number) => {
      const { rollout, training } = ratesOf({ campaign: shipped('demo'), reports: [], gigabytes });
      return [rollout.seconds, training.seconds].flatMap(({ low, high }) => [low, high]);
    };
    expect(seconds(0.004)).toEqual([0.011, 0.011, 0.016, 0.016]);
    expect(seconds(0.538)).toEqual([0.225, 0.44, 0.475, 0.93].map((value) => expect.closeTo(value, 2) as number));
    const campaign = shipped('real');
    const { completionTokens } = ratesOf({ campaign, reports: [], gigabytes: 0.538 }).rollout;
    expect(completionTokens).toMatchObject({ low: 20, high: campaign.rollouts.sampling.maxTokens, basis: 'assumed' });
  });

  test('times rollouts are what is planned', () => {
    const campaign = shipped('demo');
    const rates = ratesOf({ campaign, reports: [demoReport()], gigabytes: 0 });
    const { total } = estimate({ campaign, tasks, capabilities: 3, rates });
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
  const model = (more: object = {}) => ({ kind: 'llm', url: 'http://127.0.0.1:2/v1', model: 'm', ...more });
  const campaign = (parts: object) =>
    campaignFileSchema(registry).parse({
      name: 'x',
      target: { kind: 'builtin', name: 'shop' },
      baseModel: { path: '/base' },
      selection: { passes: 10, maxCandidates: 10 },
      calibration: { maxRounds: 5 },
      ...parts,
    });
  const description = {
    name: 'x',
    version: '1',
    policy: 'p'.repeat(3998),
    tools: [],
    maxSteps: 9,
    hasReference: false,
  };
  const planOf = (parts: object) =>
    plannedQuestions({
      campaign: campaign(parts),
      rollouts: 400,
      capabilities: 3,
      purposes: [],
      description,
      trajectory,
    });

  test.each<[object, Record<string, [number, number]>]>([
    // 200,000 to 400,000 tokens of trajectories in chunks of 60,000; at most 40 trajectories a labeling question.
    [{ analyst: model() }, { discovery: [4 + 1, 1.25 * 8], labels: [100, 125] }],
    [
      { analyst: model({ chunkTokens: 1_000_000, contextTokens: 2_000_000, labelsPerChunk: 400 }) },
      { discovery: [1, 1], labels: [10, 13] },
    ],
    [{ analyst: model({ contextTokens: 40_000, maxTokens: 10_000 }) }, { discovery: [10, 23], labels: [100, 213] }],
    // At most five rounds of each.
    [{ synthesizer: model() }, { environments: [3 * 2, Math.round(15 * 2 * 1.25)] }],
    [{ synthesizer: model({ attacks: 0 }) }, { environments: [3, 19] }],
    [{}, {}],
  ])('are asked by chunks, passes and rounds, a quarter more to mend their answer: %j', (parts, requests) => {
    const { questions } = planOf(parts);
    expect(Object.fromEntries(questions.map((one) => [one.step, [one.requests.low, one.requests.high]]))).toEqual(
      requests,
    );
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
    const spec = { url: 'http://127.0.0.1:2/v1', model: 'm' };
    const target = { kind: 'process', command: ['x'], user: { ...spec, price }, judge: spec };
    const rollouts = (purpose: Purpose, low: number, high = low) =>
      ({ stage: 'rollouts', purpose, kind: 'rollout', rollouts: { low, high } }) as const;
    const { questions } = plannedQuestions({
      campaign: campaign({ target, arms: [] }),
      rollouts: 100,
      capabilities: 1,
      purposes: [
        rollouts('base_rollouts', 100),
        rollouts('test', 50, 60),
        rollouts('calibration', 900),
        rollouts('held_out', 40),
      ],
      trajectory,
    });
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
  const target = { name: 'tau2-bench', tasks, note: 'target', isPublished: true };
  const plan = estimate({
    campaign,
    tasks,
    capabilities: 4,
    rates: ratesOf({ campaign, reports: [], gigabytes: 0 }),
  });
  const languageModels = plannedQuestions({
    campaign,
    rollouts: 74,
    capabilities: 4,
    purposes: plan.purposes,
    trajectory,
  });
  const textOf = (o: Partial<Parameters<typeof planText>[0]> = {}) =>
    planText({ campaign, target, parts: [], plan, languageModels, ...o });

  test('names the layout, the published budget, what users are asked and every rate', () => {
    const text = textOf({ parts: [{ name: 'synthesizer', ok: true, warning: true, detail: 'ends none' }] });
    expect(text).toMatch(/^target\.user: rollouts .* no price$/m);
    expect(text).toContain('\nwarning: synthesizer: ends none\n');
    expect(text).toMatch(/^GPUs: \d policy server, \d trainers, held all the time$/m);
    expect(text).toMatch(/5,120 in all; published: 5,120 for 4 capabilities/);
    expect(text).toMatch(/^arms \(grpo_target\): each is planned with the budget of trace/m);
    expect(text.match(/^ {2}(rollout|training), .*; assumed, /gm)).toHaveLength(6);
    expect(textOf({ campaign: { ...campaign, arms: [] }, target: { ...target, isPublished: false } })).not.toMatch(
      /published:|arms \(/,
    );
  });

  test('warns of too little disk', () => {
    const disk = (freeBytes: number) => textOf({ disk: { adapterBytes: 19.5e6, bytes: 11e9, freeBytes } });
    expect(disk(12e9)).toContain("\ndisk: 11.0 GB for adapters (19.5 MB; every step's is kept), 12.0 GB are free\n");
    expect(disk(9e9)).toContain('\nwarning: disk: 11.0 GB for adapters');
  });
});

test('on the disk every step has its adapter twice, every checkpoint three times; of the trained modules alone', async () => {
  const campaign = shipped('demo');
  const rates = ratesOf({ campaign, reports: [], gigabytes: 0 });
  const plan = estimate({ campaign, tasks, capabilities: 3, rates });
  const disk = (targetModules: string[], path = campaign.baseModel.path) => {
    const training = { ...campaign.training, lora: { ...campaign.training.lora, targetModules } };
    const changed = { ...campaign, training, baseModel: { path } };
    return plannedDisk({ campaign: changed, plan, home: join(home.root, 'there/later') });
  };
  const { groupsPerStep, groupSize, checkpointEvery, lora } = campaign.training;
  const steps = plan.purposes.find(({ purpose }) => purpose === 'training')!.rollouts.high / groupsPerStep / groupSize;
  // In two layers with attention, and in all four.
  const adapterBytes = (2 * (128 + 128) + 4 * (464 + 128)) * lora.r * 4;
  const found = await disk(['q_proj', 'w2']);
  expect(found).toMatchObject({ adapterBytes, bytes: adapterBytes * (2 * steps + (3 * steps) / checkpointEvery) });
  expect(found!.freeBytes).toBeGreaterThan(0);
  expect(await disk(['gate_proj'])).toBeUndefined();
  expect(await disk(['q_proj'], join(home.root, 'nowhere'))).toBeUndefined();
});

test('a target that is not there leaves the file’s counts; one that has fewer tasks than are skipped is refused', async () => {
  const campaign = shipped('demo');
  const command = [process.execPath, '-e', 'process.exit(3)'];
  const { tasks: counts, note } = await targetTasks({ ...campaign, target: { kind: 'process', command } }, home);
  expect(counts).toEqual(tasks);
  expect(note).toMatch(/can't be asked for its tasks .*upper limits/);
  const smoke = { train: 120, validation: 12, router: 30, test: 30 };
  expect((await targetTasks(shipped('smoke'), home)).tasks).toEqual(smoke);
  const skipping = { ...campaign, evaluation: { ...campaign.evaluation, skip: 100_000 } };
  await expect(targetTasks(skipping, home)).rejects.toThrow(
    /^evaluation\.skip is 100000, but the target has \d+ test tasks; lower it to \d+ or less$/,
  );
});

describe('the command', () => {
  /** Runs it in this process; what it prints, on a terminal of so many columns. */
  async function planned(file: string, { columns, more = [] }: { columns?: number; more?: string[] } = {}) {
    const lines: string[] = [];
    const restore = setColumns(columns);
    // What it is for here needs no look at the base model, which takes seconds.
    process.env['CAMPAIGN_PYTHON'] = '/no/python';
    const log = jest.spyOn(console, 'log').mockImplementation((text: string) => void lines.push(text));
    const error = jest.spyOn(process.stderr, 'write').mockImplementation((text) => Boolean(lines.push(String(text))));
    try {
      const code = await main(['--home', home.root, 'plan', file, ...more]);
      return { code, text: lines.join('\n') };
    } finally {
      log.mockRestore();
      error.mockRestore();
      restore();
      delete process.env['CAMPAIGN_PYTHON'];
      process.exitCode = 0;
    }
  }
  const fileWith = (name: string, text: string): string => {
    const file = join(home.root, name);
    writeFileSync(file, text);
    return file;
  };
  const baseModel = `baseModel: { path: ${resolve('models/base')} }`;
  const demo = resolve('campaigns/demo.yaml');

  test('fails for what the analyst needs and the target lacks, and warns of what the synthesizer does', async () => {
    const ledger = `[${process.execPath}, ${resolve('test/support/ledger.mjs')}, no reference]`;
    const target = `target: { kind: process, command: ${ledger} }`;
    const counts = 'training: { groupsPerStep: 1 }\nvalidation: { targetTasks: 2 }';
    const file = fileWith('ledger.yaml', `name: ledger\npreset: demo\n${target}\n${baseModel}\n${counts}\n`);
    const { code, text } = await planned(file);
    expect(code).toBe(1);
    expect(text).toContain('no reference actions, no rules, output schemas of 0 of 2 tools');
    expect(text).toMatch(/^error: analyst: .*reference actions.*; change the field analyst of the campaign file$/m);
    expect(text).toMatch(
      /^warning: synthesizer: capabilities will end not_synthesized and get no adapter; generators: /m,
    );
    expect(text).toMatch(/^base rollouts +4$/m);
  });

  test('takes those tasks that there are, and the capabilities that are given outright', async () => {
    const target = 'target: { kind: builtin, name: shop }';
    const file = fileWith(
      'many.yaml',
      `name: many\npreset: demo\n${target}\n${baseModel}\nrollouts: { tasks: 99999 }\n`,
    );
    expect((await planned(file)).text).toMatch(/^tasks: 340 of 99999 train, 60 validation, 200 router, 200 test$/m);
    const { text } = await planned(resolve('campaigns/real.yaml'));
    expect(text).toMatch(/^real: planned for the 6 capabilities that it is given /);
  });

  test('on a terminal folds sentences, and neither words nor tables', async () => {
    const [{ code, text }, folded] = [await planned(demo), await planned(demo, { columns: 60 })];
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
    expect(await planned(demo, { more: ['--rates', rates] })).toEqual({
      code: 1,
      text: expect.stringMatching(
        /^campaign: --rates .*rates\.yaml: rollout: .*second.*; docs\/plan\.md has the form\n$/,
      ),
    });
  });
});

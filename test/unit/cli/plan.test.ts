/** The plan's arithmetic against finished campaigns, and where its rates come from. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fixedPrompt } from '../../../examples/fixed-prompt';
import { passed, warned } from '../../../src/checks/check';
import { loadCampaign } from '../../../src/cli/campaign-file';
import { main } from '../../../src/cli/main';
import { estimate, plannedDisk, plannedRollouts } from '../../../src/cli/plan/estimate';
import { plannedQuestions } from '../../../src/cli/plan/language-models';
import { measured, ratesOf } from '../../../src/cli/plan/rates';
import { targetTasks } from '../../../src/cli/open-target';
import { planText } from '../../../src/cli/plan/text';
import { homeAt } from '../../../src/cli/project';
import { type Purpose, purposes } from '../../../src/domain/rollout';
import type { Report } from '../../../src/report/model';
import { registry } from '../../../src/registry';
import { completeReport } from '../../../src/report/render';
import { setColumns } from '../../support/columns';
import { figure, reportFixture } from '../../support/report-fixture';

// What a plan says of disk comes from the trainer's Python, which starts torch: seconds each time, and more on busy cores.
jest.setTimeout(180_000);

const shipped = (name: string) =>
  loadCampaign({ file: join(resolve(__dirname, '../../..'), 'campaigns', `${name}.yaml`) });
const home = homeAt(mkdtempSync(join(tmpdir(), 'plan-')));
const trajectory = { low: 100, high: 100, basis: 'assumed', source: 'test' } as const;
const demoTasks = { train: 340, validation: 60, router: 200, test: 200 };
const counts = (planned: ReturnType<typeof plannedRollouts>) =>
  Object.fromEntries(planned.map(({ purpose, rollouts }) => [purpose, rollouts.low]));

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

describe('counts', () => {
  test('are those of the finished demo: three capabilities, one calibration round each, 12,268 rollouts', () => {
    const planned = plannedRollouts({ campaign: shipped('demo'), tasks: demoTasks, capabilities: 3 });
    // At least: where no pair of adapters gains, three fewer policies are tested.
    expect(counts(planned)).toEqual({ ...demoPurposes, test: demoPurposes.test - 600 });
    expect(planned.find(({ purpose }) => purpose === 'test')!.rollouts.high).toBe(demoPurposes.test);
    expect(Object.values(demoPurposes).reduce((a, b) => a + b)).toBe(12_268);
  });

  test('of a gate the router’s tasks and the test’s are counted, where there are adapters to add', () => {
    const demo = shipped('demo');
    const router = { ...demo.router, kind: 'moe_gate' };
    const of = (campaign: typeof demo, capabilities: number) =>
      counts(plannedRollouts({ campaign, tasks: demoTasks, capabilities }));
    const more = (purpose: Purpose, capabilities: number) =>
      of({ ...demo, router }, capabilities)[purpose]! - of(demo, capabilities)[purpose]!;
    expect([more('outcome_matrix', 2), more('test', 2)]).toEqual([200, 200]);
    expect([more('outcome_matrix', 1), more('test', 1)]).toEqual([0, 0]);
  });

  test('without a selected capability only base is rolled out, evaluated and routed to', () => {
    const planned = plannedRollouts({ campaign: shipped('demo'), tasks: demoTasks, capabilities: 0 });
    expect(counts(planned)).toEqual({ base_rollouts: 340, outcome_matrix: 200, test: 400 });
  });

  test('the published set-up trains 5,120 rollouts for four capabilities, and as many on the target', () => {
    for (const name of ['tau2-qwen3-30b', 'toolsandbox-qwen3-30b']) {
      const planned = plannedRollouts({ campaign: shipped(name), tasks: demoTasks, capabilities: 4 });
      expect(counts(planned)).toMatchObject({ training: 2 * 5120 });
    }
  });
});

test('a composite is counted in the upper ends, with the training rollouts of trace as they are', () => {
  const demo = shipped('demo');
  const ranges = (share: number, capabilities = 3) =>
    Object.fromEntries(
      plannedRollouts({
        campaign: { ...demo, composites: { share } },
        tasks: demoTasks,
        capabilities,
      }).map(({ purpose, rollouts }) => [purpose, rollouts]),
    );
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

test('of each arm what its kind says is counted, within the budget of trace', () => {
  const shippedDemo = shipped('demo');
  const demo = { ...shippedDemo, training: { ...shippedDemo.training, steps: 24 } };
  const planned = (arms: typeof demo.arms, kinds = registry) =>
    counts(plannedRollouts({ campaign: { ...demo, arms }, tasks: demoTasks, capabilities: 3, kinds }));
  const none = planned([]);
  /** What an arm adds. */
  const added = (...arms: typeof demo.arms) => {
    const all = planned(arms);
    return ['training', 'held_out', 'test', 'outcome_matrix'].map((purpose) => all[purpose]! - none[purpose]!);
  };
  expect(none.training).toBe(4608);
  const whole = [4608, 9 * 60, 200, 0];
  for (const kind of ['grpo_target', 'grpo_single', 'joint']) expect(added({ kind })).toEqual(whole);
  expect(added({ kind: 'environments', modules: 'x' })).toEqual(whole);
  expect(added({ kind: 'joint' }, { kind: 'joint', name: 'again' })).toEqual(whole.map((n) => 2 * n));
  const { training, outcome_matrix } = planned([{ kind: 'fixed_prompt' }], {
    ...registry,
    arms: [...registry.arms, fixedPrompt],
  });
  expect([training, outcome_matrix]).toEqual([none.training, none.outcome_matrix! + 200]);
});

describe('rates', () => {
  test('of an earlier campaign: what its report has', () => {
    const of = { promptTokens: 300, completionTokens: 20 };
    expect(measured(demoReport())).toEqual({
      rollout: { seconds: 0.0095, ...of },
      training: { seconds: 0.03, ...of },
    });
  });

  test('measured ones go before the file, the file before assumptions; each says where it is from', () => {
    const campaign = shipped('demo');
    const file = { path: 'rates.yaml', rates: { training: { seconds: 2, promptTokens: 9 } } };
    const stopped = demoReport();
    stopped.rollouts!.byPurpose = stopped.rollouts!.byPurpose.slice(0, 1);
    stopped.cost!.secondsPerRollout = { rollout: 0.019 };
    const rates = ratesOf({ campaign, reports: [stopped], file, gigabytes: 0 });
    expect(rates.rollout.seconds).toMatchObject({ basis: 'measured', source: 'campaign demo of 2026-01-05' });
    expect(rates.rollout.seconds.low).toBe(0.019);
    expect(rates.training.seconds).toMatchObject({ low: 2, high: 2, basis: 'file', source: 'rates.yaml' });
    expect(rates.training.completionTokens).toMatchObject({ basis: 'assumed' });
    for (const kind of Object.values(rates)) for (const rate of Object.values(kind)) expect(rate.source).not.toBe('');
  });
});

test('what nothing has measured takes longer with a larger base model', () => {
  const seconds = (gigabytes: number) => {
    const { rollout, training } = ratesOf({ campaign: shipped('demo'), reports: [], gigabytes });
    return [rollout.seconds, training.seconds].map(({ low, high }) => [low, high]);
  };
  expect(seconds(0.004)).toEqual([
    [0.011, 0.011],
    [0.016, 0.016],
  ]);
  const [rollout, training] = seconds(0.538);
  expect(rollout).toEqual([expect.closeTo(0.225, 2), expect.closeTo(0.44, 2)]);
  expect(training).toEqual([expect.closeTo(0.475, 2), expect.closeTo(0.93, 2)]);
  const campaign = shipped('real');
  const { completionTokens } = ratesOf({ campaign, reports: [], gigabytes: 0.538 }).rollout;
  expect(completionTokens).toMatchObject({ low: 20, high: campaign.rollouts.sampling.maxTokens, basis: 'assumed' });
});

test('a plan from the rates of a finished campaign is their product with its rollouts', () => {
  const campaign = shipped('demo');
  const rates = ratesOf({ campaign, reports: [demoReport()], gigabytes: 0 });
  const plan = estimate({ campaign, tasks: demoTasks, capabilities: 3, rates });
  expect(plan.total.wallSeconds.low).toBeCloseTo(0.03 * 6144 + 0.0095 * (11_668 - 6144), 1);
  expect(plan.total.promptTokens.low).toBeCloseTo(300 * 11_668);
  expect(plan.total.gpuHours.high).toBe(0);
});

test('the text names the layout, the published budget and every rate', async () => {
  const campaign = shipped('tau2-qwen3-30b');
  const target = {
    name: 'tau2-bench',
    tasks: { train: 74, validation: 30, router: 104, test: 60 },
    note: 'target',
    isPublished: true,
  };
  const plan = estimate({
    campaign,
    tasks: target.tasks,
    capabilities: 4,
    rates: ratesOf({ campaign, reports: [], gigabytes: 0 }),
  });
  const parts = [warned('synthesizer', 'ends none'), passed('analyst', 'rules')];
  const { purposes } = plan;
  const languageModels = plannedQuestions({ campaign, rollouts: 74, capabilities: 4, purposes, trajectory });
  const text = planText({ campaign, target, parts, plan, languageModels });
  expect(text).toMatch(/^target\.user: rollouts /m);
  expect(text).toContain('\nwarning: synthesizer: ends none\n');
  expect(text).toContain('GPUs: 4 policy server, 4 trainers');
  expect(text).toContain('1,280 each, 5,120 in all; published: 5,120 for 4 capabilities, 2 to 4 h per adapter');
  expect(text.match(/; assumed, /g)).toHaveLength(6);
  expect(text).toMatch(/^all .* 140 - 1900$/m);
  expect(text).toMatch(/^router outcome matrix +1,248$/m);
  expect(text).not.toMatch(/^composite: /m);
  expect(text).toContain(
    'arms (grpo_target): each is planned with the budget of trace, all capabilities trained to their last step',
  );
  const unpublished = planText({
    campaign: { ...campaign, arms: [] },
    target: { ...target, isPublished: false },
    parts: [],
    plan,
    languageModels,
  });
  expect(unpublished).not.toMatch(/published:|arms \(/);
});

describe('the disk', () => {
  const planned = (modules: string[]) => {
    const campaign = shipped('demo');
    campaign.training.lora.targetModules = modules;
    const rates = ratesOf({ campaign, reports: [], gigabytes: 0 });
    const plan = estimate({ campaign, tasks: demoTasks, capabilities: 3, rates });
    return { campaign, plan };
  };

  const disk = (o: ReturnType<typeof planned>) => plannedDisk({ ...o, home: join(home.root, 'there/later') });

  test('every step has its adapter twice, every checkpoint three times; of the trained modules alone', async () => {
    const { campaign, plan } = planned(['q_proj', 'w2']);
    const { r } = campaign.training.lora;
    const { groupsPerStep, groupSize, checkpointEvery } = campaign.training;
    const training = plan.purposes.find(({ purpose }) => purpose === 'training')!.rollouts.high;
    const steps = training / (groupsPerStep * groupSize);
    // In two layers with attention, and in all four.
    const adapterBytes = (2 * (128 + 128) + 4 * (464 + 128)) * r * 4;
    const found = await disk({ campaign, plan });
    expect(found).toMatchObject({ adapterBytes, bytes: adapterBytes * (2 * steps + (3 * steps) / checkpointEvery) });
    expect(found!.freeBytes).toBeGreaterThan(0);
  });

  test('is not told where the base model is not there, or has none of the modules', async () => {
    const { campaign, plan } = planned(['q_proj']);
    const baseModel = { path: join(home.root, 'nowhere') };
    expect(await disk({ campaign: { ...campaign, baseModel }, plan })).toBeUndefined();
    expect(await disk(planned(['gate_proj']))).toBeUndefined();
  });

  test('too little is a warning', async () => {
    const { campaign, plan } = planned([]);
    const target = await targetTasks(campaign, home);
    const textOf = (freeBytes: number) =>
      planText({
        ...{ campaign, target, parts: [], plan },
        disk: { adapterBytes: 19.5e6, bytes: 11e9, freeBytes },
        languageModels: plannedQuestions({ campaign, rollouts: 340, capabilities: 3, purposes: [], trajectory }),
      });
    expect(textOf(12e9)).toContain(`\ndisk: 11.0 GB for adapters (19.5 MB; every step's is kept), 12.0 GB are free\n`);
    expect(textOf(9e9)).toContain('\nwarning: disk: 11.0 GB for adapters');
  });
});

test('a target that is not there leaves the file’s counts, and says so', async () => {
  const command = [process.execPath, '-e', 'process.exit(3)'];
  const campaign = { ...shipped('demo'), target: { kind: 'process' as const, command, processes: 1 } };
  const { tasks, note } = await targetTasks(campaign, home);
  expect(tasks).toEqual(demoTasks);
  expect(note).toMatch(/can't be asked for its tasks .*upper limits/);
  expect((await targetTasks(shipped('smoke'), home)).tasks).toEqual({
    train: 120,
    validation: 12,
    router: 30,
    test: 30,
  });
});

test('a file that asks for more than the target has is refused, not estimated', async () => {
  const campaign = shipped('demo');
  const skipping = { ...campaign, evaluation: { ...campaign.evaluation, skip: 100_000 } };
  await expect(targetTasks(skipping, home)).rejects.toThrow(
    /^evaluation\.skip is 100000, but the target has \d+ test tasks; lower it to \d+ or less$/,
  );
});

/** Runs the program in this process; what it prints, on a terminal of so many columns. */
async function planned(file: string, columns?: number): Promise<{ code: number; text: string }> {
  const lines: string[] = [];
  const restore = setColumns(columns);
  // What it is for here needs no look at the base model, which takes seconds.
  process.env['CAMPAIGN_PYTHON'] = '/no/python';
  const log = jest.spyOn(console, 'log').mockImplementation((text: string) => void lines.push(text));
  try {
    const code = await main(['--home', home.root, 'plan', file]);
    return { code, text: lines.join('\n') };
  } finally {
    log.mockRestore();
    restore();
    delete process.env['CAMPAIGN_PYTHON'];
    process.exitCode = 0;
  }
}

test('what analyst and synthesizer need and the target lacks: an error, and a warning', async () => {
  const file = join(home.root, 'ledger.yaml');
  const target = `{ kind: process, command: [${process.execPath}, ${resolve('test/support/ledger.mjs')}, no reference] }`;
  const body = `name: ledger\npreset: demo\ntarget: ${target}\nbaseModel: { path: ${resolve('models/base')} }\ntraining: { groupsPerStep: 1 }\n`;
  writeFileSync(file, `${body}validation: { targetTasks: 2 }\n`);
  const { code, text } = await planned(file);
  expect(code).toBe(1);
  expect(text).toContain('no reference actions, no rules, output schemas of 0 of 2 tools');
  expect(text).toMatch(/^error: analyst: .*reference actions.*; change the field analyst of the campaign file$/m);
  expect(text).toMatch(
    /^warning: synthesizer: capabilities will end not_synthesized and get no adapter; generators: /m,
  );
  expect(text).toMatch(/^base rollouts +4$/m);
  const shop = await planned(resolve('campaigns/demo.yaml'));
  expect(shop.code).toBe(0);
  expect(shop.text).not.toMatch(/^(error|warning): /m);
});

test('of more tasks than the target has those that there are are taken, and both are said', async () => {
  const file = join(home.root, 'many.yaml');
  const shop = `target: { kind: builtin, name: shop }\nbaseModel: { path: ${resolve('models/base')} }`;
  writeFileSync(file, `name: many\npreset: demo\n${shop}\nrollouts: { tasks: 99999 }\n`);
  expect((await planned(file)).text).toMatch(/^tasks: 340 of 99999 train, 60 validation, 200 router, 200 test$/m);
});

test('capabilities that are given outright are counted', async () => {
  const { text } = await planned(resolve('campaigns/real.yaml'));
  expect(text).toMatch(/^real: planned for the 6 capabilities that it is given /);
  expect((await planned(resolve('campaigns/demo.yaml'))).text).toMatch(/^demo: planned for 4 capabilities; how many /);
});

test('on a terminal sentences are folded, and neither words nor tables', async () => {
  const [whole, folded] = [
    await planned(resolve('campaigns/demo.yaml')),
    await planned(resolve('campaigns/demo.yaml'), 60),
  ];
  const isTable = (line: string) => /\S {2,}\S/.test(line);
  const lines = folded.text.split('\n');
  expect(lines.filter(isTable)).toEqual(whole.text.split('\n').filter(isTable));
  expect(lines.filter((line) => !isTable(line) && line.length > 60)).toEqual([]);
  expect(lines.length).toBeGreaterThan(whole.text.split('\n').length);
  expect(folded.text.split(/\s+/)).toEqual(whole.text.split(/\s+/));
});

test('a rates file with a mistake is one line', async () => {
  const file = join(home.root, 'rates.yaml');
  writeFileSync(file, 'rollout: { second: 3 }\n');
  const written: string[] = [];
  const write = jest.spyOn(process.stderr, 'write').mockImplementation((...args: unknown[]) => {
    written.push(String(args[0]));
    const done = args.at(-1);
    if (typeof done === 'function') done();
    return true;
  });
  const code = await main(['--home', home.root, 'plan', resolve('campaigns/demo.yaml'), '--rates', file]);
  write.mockRestore();
  expect([code, written.join('')]).toEqual([
    1,
    expect.stringMatching(/^campaign: --rates .*rates\.yaml: rollout: .*second.*; docs\/plan\.md has the form\n$/),
  ]);
});

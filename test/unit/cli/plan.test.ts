/** The plan's rates (test/workflows/campaign.test.ts holds its counts), what language models will be asked, and where its rates come from. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { loadCampaign } from '../../../src/cli/campaign-file';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { targetTasks } from '../../../src/cli/checks/target';
import { countWork, estimate, measured, ratesOf } from '../../../src/cli/plan/estimate';
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

// What a plan says of disk comes from the trainer's Python, which starts torch: seconds each time, and more on busy cores.
jest.setTimeout(180_000);

const shipped = (name: string) =>
  loadCampaign({ file: join(resolve(__dirname, '../../..'), 'campaigns', `${name}.yaml`) });
const demo = shipped('demo');
const home = homeAt(mkdtempSync(join(tmpdir(), 'plan-')));
const trajectory = { low: 500, high: 1000, basis: 'assumed', source: 'test' } as const;
const tasks = { train: 340, validation: 60, router: 200, test: 200 };
const workOf = (campaign: Campaign, capabilities: number) => countWork({ campaign, tasks, capabilities });

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

test.each(['tau2-qwen3-30b', 'toolsandbox-qwen3-30b'])('%s trains with the published rollouts', (name) => {
  const training = workOf(shipped(name), 4).purposes.find(({ purpose }) => purpose === 'training');
  // As many again on the target.
  expect(training!.rollouts.low).toBe(2 * 5120);
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

  test.each<[object, string]>([
    [{}, 'no budget'],
    [{ budget: { tokens: 1e9 } }, 'budget.tokens'],
    [{ budget: { dollars: 12 } }, 'budget.dollars'],
  ])('are held against %j', (more, field) => {
    expect(planOf({ analyst: model({ price }), ...more }).budget).toContain(field);
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

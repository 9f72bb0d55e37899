/** The cost that `campaign check` prints: counts are tested in test/workflows/campaign.test.ts, so here are rates, requests and tasks. */
import { resolve } from 'node:path';
import { loadCampaign } from '../../../src/cli/campaign-file';
import { plannedRequests } from '../../../src/cli/check/language-models';
import { openOnce, splitOf } from '../../../src/cli/check/target';
import { costOfWork, countWork, isLike, measuredBase } from '../../../src/cli/check/work';
import { homeAt } from '../../../src/cli/project';
import { completeReport } from '../../../src/report/render';
import { reportFixture } from '../../support/report-fixture';
import { newFolder } from '../../support/temporary-folder';

const shipped = (name: string) => loadCampaign({ file: resolve('campaigns', `${name}.yaml`) });
const demo = shipped('demo');
const taken = { train: 340, validation: 60, router: 200, test: 200 };
const workOf = (campaign = demo, capabilities = 3) => countWork({ campaign, tasks: taken, capabilities });

/** The report of a campaign that measured `seconds` per rollout. */
function measuredReport(seconds: { rollout?: number; training?: number }) {
  const draft = reportFixture();
  draft.cost!.secondsPerRollout = seconds;
  return completeReport(draft);
}

test.each(['tau2-qwen3-30b', 'toolsandbox-qwen3-30b'])('%s trains with the published rollouts', (name) => {
  const training = workOf(shipped(name), 4).purposes.find(({ purpose }) => purpose === 'training');
  // The baseline on the target has the same budget.
  expect(training!.rollouts.low).toBe(2 * 5120);
});

test('time and GPU-hours are rollouts times measured rates, and absent without one', () => {
  const gpus = { ...shipped('tau2-qwen3-30b'), baseModel: demo.baseModel };
  const work = workOf(gpus);
  const [plain, training] = costOfWork({ campaign: gpus, work, reports: [measuredReport({ rollout: 0.5 })] }).costs;
  expect(plain!.seconds!.low).toBeCloseTo(0.5 * plain!.rollouts.low);
  expect(plain!.gpuHours!.low).toBeCloseTo((plain!.seconds!.low * 8) / 3600);
  expect([training!.seconds, training!.gpuHours]).toEqual([undefined, undefined]);
  const unmeasured = costOfWork({ campaign: gpus, work, reports: [] }).costs;
  expect(unmeasured.flatMap(({ seconds, gpuHours }) => seconds ?? gpuHours ?? [])).toEqual([]);
});

test('the base rate is that of the test tasks, of a campaign with the same base model and target', () => {
  const report = measuredReport({});
  const base = report.arms!.find(({ role }) => role === 'base')!.successRate!.value;
  expect(measuredBase([report])).toEqual({ rate: base, campaign: 'demo' });
  const same = { ...report, campaign: { ...report.campaign, baseModel: 'base@8facfb00a73e' } };
  const { name } = report.campaign.target;
  expect([isLike(same, demo, name), isLike(same, demo, 'another'), isLike(report, demo, name)]).toEqual([
    true,
    false,
    false,
  ]);
});

describe('requests to language models', () => {
  const planned = (fields: object) => {
    const campaign = { ...demo, ...fields } as typeof demo;
    return plannedRequests({ campaign, work: workOf(campaign) });
  };
  const demoAnalyst = () => shipped('tau2-qwen3-30b').analyst;

  test('have tokens, and dollars where there is a price', () => {
    const full = { ...demoAnalyst(), price: { input: 1, output: 10 } };
    const { questions, total } = planned({ analyst: full });
    expect(questions.map(({ step }) => step)).toEqual(['discovery', 'labels']);
    expect(total.dollars!.low).toBeGreaterThan(0);
    expect(total.tokens.high).toBeGreaterThan(total.tokens.low);
    expect(planned({ analyst: demoAnalyst() }).total).not.toHaveProperty('dollars');
  });
});

test('tasks are at most those of the file, and those that the target has', async () => {
  const home = homeAt(newFolder());
  const opened = await openOnce(demo, home)();
  expect(splitOf(demo, opened)).toEqual(taken);
  const fewer = splitOf(demo, { ...opened, test: opened.test.slice(0, 100) });
  expect(fewer).toMatchObject({ test: 100 });
  expect(splitOf(demo, undefined)).toEqual(taken);
});

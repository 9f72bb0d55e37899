/** The cost that `campaign check` prints: counts are tested in test/workflows/campaign.test.ts, so here are rates, requests and tasks. */
import { resolve } from 'node:path';
import { loadCampaign } from '../../../src/cli/campaign-file';
import { plannedRequests } from '../../../src/cli/check/language-models';
import { openOnce, splitOf } from '../../../src/cli/check/target';
import { costLines, detectableLines, firstTurnLines, requestLines } from '../../../src/cli/check/text';
import { readTurn } from '../../../src/cli/check/first-turns';
import { costOfWork, countWork, isLike, measuredBase } from '../../../src/cli/check/work';
import { homeAt } from '../../../src/cli/project';
import { purposes } from '../../../src/domain/rollout';
import { completeReport } from '../../../src/report/render';
import { figure, reportFixture } from '../../support/report-fixture';
import { newFolder } from '../../support/temporary-folder';

const shipped = (name: string) => loadCampaign({ file: resolve('campaigns', `${name}.yaml`) });
const demo = shipped('demo');
const taken = { train: 340, validation: 60, router: 200, test: 200 };
const workOf = (campaign = demo, capabilities = 3) => countWork({ campaign, tasks: taken, capabilities });

/** The report of a campaign that measured `seconds` and 300 and 20 tokens per rollout. */
function measuredReport(seconds: { rollout?: number; training?: number }) {
  const draft = reportFixture();
  draft.rollouts!.byPurpose = purposes.map((purpose, i) => {
    const tokens = (name: string, value: number) =>
      figure(`rollouts.p${i}.${name}`, value * 100, 100, { unit: 'tokens' as const });
    return {
      purpose,
      scored: figure(`rollouts.p${i}.scored`, 100, 100, { unit: 'count' }),
      broken: figure(`rollouts.p${i}.broken`, 0, 100, { unit: 'count' }),
      promptTokens: tokens('prompt_tokens', 300),
      completionTokens: tokens('completion_tokens', 20),
    };
  });
  draft.cost!.secondsPerRollout = seconds;
  return completeReport(draft);
}

test.each(['tau2-qwen3-30b', 'toolsandbox-qwen3-30b'])('%s trains with the published rollouts', (name) => {
  const training = workOf(shipped(name), 4).purposes.find(({ purpose }) => purpose === 'training');
  // The baseline on the target has the same budget.
  expect(training!.rollouts.low).toBe(2 * 5120);
});

test('time, tokens and GPU-hours are rollouts times measured rates, and absent without one', () => {
  const gpus = { ...shipped('tau2-qwen3-30b'), baseModel: demo.baseModel };
  const work = workOf(gpus);
  const [plain, training] = costOfWork({ campaign: gpus, work, reports: [measuredReport({ rollout: 0.5 })] }).costs;
  expect(plain!.seconds!.low).toBeCloseTo(0.5 * plain!.rollouts.low);
  expect(plain!.promptTokens!.high).toBeCloseTo(300 * plain!.rollouts.high);
  expect(plain!.gpuHours!.low).toBeCloseTo((plain!.seconds!.low * 8) / 3600);
  expect([training!.seconds, training!.gpuHours]).toEqual([undefined, undefined]);
  const unmeasured = costOfWork({ campaign: gpus, work, reports: [] }).costs;
  expect(
    unmeasured.flatMap(({ seconds, promptTokens, gpuHours }) => seconds ?? promptTokens ?? gpuHours ?? []),
  ).toEqual([]);
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
  const analyst = { kind: 'llm', url: 'http://127.0.0.1:2/v1', model: 'm', price: { input: 1, output: 10 } };
  const planned = (fields: object) => {
    const campaign = { ...demo, analyst, ...fields } as typeof demo;
    return plannedRequests({ campaign, work: workOf(campaign), trajectory: { low: 500, high: 1000 } });
  };
  const demoAnalyst = () => shipped('tau2-qwen3-30b').analyst;

  test('have tokens and dollars, which a budget is compared with', () => {
    const full = { ...demoAnalyst(), price: { input: 1, output: 10 } };
    const { questions, total } = planned({ analyst: full, budget: {} });
    expect(questions.map(({ step }) => step)).toEqual(['discovery', 'labels']);
    expect(total.dollars!.low).toBeGreaterThan(0);
    expect(total.tokens.high).toBeGreaterThan(total.tokens.low);
    for (const budget of [{ tokens: 1 }, { dollars: 1e6 }])
      expect(planned({ analyst: full, budget }).budget).toContain(`budget.${Object.keys(budget)[0]}`);
    expect(planned({ analyst: demoAnalyst(), budget: {} }).total).not.toHaveProperty('dollars');
  });
});

test('tasks: what the file asks for, and what the target has', async () => {
  const home = homeAt(newFolder());
  const opened = await openOnce(demo, home)();
  expect(splitOf(demo, opened)).toEqual({ wanted: taken, taken, available: { train: 400, test: 200 } });
  const fewer = splitOf(demo, { ...opened, train: opened.train.slice(0, 100) });
  expect(fewer.wanted).toEqual(taken);
  expect(fewer.taken.train).toBeLessThan(100);
  expect(splitOf(demo, undefined)).toEqual({ wanted: taken, taken });
});

test('a first turn is read as the policy server parsed it', () => {
  const tools = [
    { name: 'find', description: '', parameters: { type: 'object', properties: { id: { type: 'string' } } } },
  ] as never;
  const calls = (name: string, args: object) => ({ content: '', toolCalls: [{ id: 'c', name, arguments: args }] });
  const read = (message: object, finishReason = 'stop') =>
    readTurn({ message: { role: 'assistant', ...message }, finishReason } as never, tools);
  expect(read(calls('find', { id: 'a' }))).toBe('call');
  expect(read(calls('find', { id: 3 }))).toBe('wrong arguments');
  expect(read(calls('lookup', {}))).toBe('unknown tool');
  expect(read({ content: 'Hello' })).toBe('text');
  expect(read({ content: 'Hello' }, 'length')).toBe('cut off');
  expect(read({ content: ' ' })).toBe('empty');
});

test('the sections read like this', () => {
  const turn = { task: 'train-1', reading: 'call', text: '', calls: ['find(id="a")'] } as const;
  const words = { task: 'train-2', reading: 'text', text: 'I can not\nhelp.', calls: [] } as const;
  const tasks = { wanted: taken, taken: { ...taken, train: 60 }, available: { train: 120, test: 200 } };
  const work = workOf();
  const measured = costOfWork({ campaign: demo, work, reports: [measuredReport({ rollout: 0.01 })] });
  const requests = plannedRequests({
    campaign: { ...demo, analyst: shipped('tau2-qwen3-30b').analyst },
    work,
    trajectory: { low: 500, high: 1000 },
  });
  const sections = [
    firstTurnLines({ turns: [turn, { ...words, calls: [] }], tools: 1 }),
    firstTurnLines({ turns: [{ ...words, calls: [] }], tools: 1 }),
    costLines({ tasks, work, cost: measured, isGiven: true }),
    requestLines(requests),
    detectableLines({ tasks: 200, trials: 1, base: { rate: 0.317, campaign: 'demo' }, difference: 0.13 }),
    detectableLines({ tasks: 4, trials: 1, base: undefined, difference: undefined }),
  ];
  expect(sections.map((lines) => lines.join('\n')).join('\n\n')).toMatchSnapshot();
});

/** Paired differences: their test in report.json, in the verdict, on the page and on the terminal. */
import { reportSchema } from '../../../src/report/model';
import type { TaskMeans } from '../../../src/domain/paired-statistics';
import { differenceFigure } from '../../../src/report/build/figures';
import { completeReport, renderReport } from '../../../src/report/render';
import { terminalTable } from '../../../src/report/page/table';
import { ref, reportFixture } from '../../support/report-fixture';

test('differences carry the tasks that each side solves more often, and the p of one test with their interval', () => {
  const once = (...solved: number[]): TaskMeans => ({
    success: new Map(solved.map((value, task) => [`t${task}`, value])),
    reward: new Map(),
    branch: new Map(),
    trials: 1,
    from: [ref('batch')],
  });
  const of = (treatment: TaskMeans, control: TaskMeans) =>
    differenceFigure({ id: 'x', treatment, control, level: { confidence: 0.95, seed: 1 } });
  const [one, other] = [once(1, 1, 1, 0), once(0, 0, 1, 1)];
  expect(of(one, other)).toMatchObject({ value: 0.25, n: 4, test: { better: 2, worse: 1, p: 1 } });
  expect(of({ ...once(0.5, 1, 1, 0), trials: 2 }, other)).toMatchObject({
    test: { better: 2, worse: 1 },
    interval: { method: 'sign-flip test over tasks' },
  });
  expect(of(once(), once())).toEqual({ id: 'x', value: null, n: 0, from: [] });
});

test('says on how many single tasks, with the exact test, whichever arm is named first', () => {
  const draft = reportFixture();
  const trace = draft.arms!.find(({ name }) => name === 'trace')!;
  trace.differenceToBase!.test = { better: 80, worse: 3, p: 1e-9 };
  const { difference } = draft.comparisons![0]!;
  difference.test = { better: 1, worse: 21, p: 0.0000109 };
  Object.assign(difference, { value: -0.14, interval: { ...difference.interval!, low: -0.2, high: -0.08 } });
  const said = completeReport(draft).verdict.map(({ text }) => text);
  expect(said).toContain(
    'trace is 38.5 points above base (95% interval +32.0 to +45.0, n 200; better on 80 tasks, worse on 3, p <0.001).',
  );
  expect(said.join('\n')).toContain(
    'grpo_target is 14.0 points ahead of trace (95% interval +8.0 to +20.0, n 200; better on 21 tasks, worse on 1, p <0.001; over',
  );
  const { html, json } = renderReport({ report: draft });
  expect(html).toContain('better on 1 task, worse on 21, p &lt;0.001');
  expect(html).toContain('McNemar’s exact test');
  expect(reportSchema.parse(JSON.parse(json)).comparisons![0]!.difference.test).toEqual(difference.test);
  const lines = terminalTable(completeReport(draft)).split('\n');
  expect(lines).toContain('trace to base: +38.5 pt (+32.0 to +45.0), better on 80 tasks, worse on 3, p <0.001');
  expect(lines.join(' ').replace(/ +/g, ' ')).toContain(
    'trace to grpo_target: -14.0 pt (-20.0 to -8.0), better on 1 task, worse on 21, p <0.001; over trainings -25.5 to -2.5, behind',
  );
});

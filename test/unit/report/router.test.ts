/** What the report says of a router: one that could not be fitted, options that it can not choose, forms, sums, regret. */
import type { ArtifactStore } from '../../../src/artifacts/store';
import type { ReportDraft } from '../../../src/report/model';
import type { CampaignRecord } from '../../../src/domain/results';
import { routerOf } from '../../../src/report/build/router';
import { completeReport, renderReport } from '../../../src/report/render';
import { terminalTable } from '../../../src/report/page/table';
import { verdict } from '../../../src/report/verdict';
import { reportFixture } from '../../support/report-fixture';

test('one that was not fitted has no figures', async () => {
  const record = { router: { reason: 'the router was not fitted', options: ['base'], sums: [], outcomes: [] } };
  const given = { store: {} as ArtifactStore, record: record as unknown as CampaignRecord };
  expect(await routerOf({ ...given, level: { confidence: 0.95, seed: 1 } })).toEqual({});
});

test('an option that it can not choose is said with the reason', () => {
  const draft = reportFixture();
  draft.router!.failed = [{ name: 'tell_the_price', reason: 'BadInput: another rank' }];
  const texts = verdict(draft).map(({ text }) => text);
  expect(texts).toContain('The router can not choose tell_the_price: BadInput: another rank.');
});

test('why nothing was added up is said by verdict, page and terminal', () => {
  const draft = reportFixture();
  draft.router!.noSums = 'none of the 3 adapters gains';
  // One statement with what the test tasks say since.
  const why =
    'none of the 3 adapters gains; with the test tasks, which came later, complete_all_requested_actions helps';
  const sentence = `No adapters were added up: ${why}.`;
  const gains = draft.capabilities!.flatMap(({ validation }) => validation?.synthesized.after.id ?? []);
  expect(gains.length).toBeGreaterThan(0);
  expect(verdict(draft)).toContainEqual({ text: sentence, behind: gains });
  const report = completeReport(draft);
  expect(renderReport({ report }).html.split(sentence)).toHaveLength(3);
  expect(terminalTable(report).replaceAll(/\s+/g, ' ')).toContain(`no sums of adapters: ${why}`);
});

/** With sums of four adapters, of which one is routed to, and all that a learned router says of itself. */
function summed(): ReportDraft {
  const draft = reportFixture();
  const { router, arms } = draft;
  const like = arms!.find(({ role }) => role === 'adapter')!;
  const rates = [0.7, 0.5, 0.9, 0.6, 0.8];
  const sums = rates.map((value, n) => {
    const id = `arms.sum${n}`;
    const successRate = { ...like.successRate!, id: `${id}.success_rate`, value };
    const differenceToBase = { ...like.differenceToBase!, id: `${id}.difference_to_base` };
    const { trainingRollouts, allRollouts } = like;
    const name = `complete_all_requested_actions+sum_number_${n}`;
    return { ...like, name, role: 'sum' as const, successRate, differenceToBase, trainingRollouts, allRollouts };
  });
  arms!.splice(4, 0, ...sums);
  const measured = router!.crossValidation.routed;
  const form = (name: string, kept: boolean) => ({
    form: name,
    kept,
    successRate: { ...measured, id: `router.cross_validation.forms.${name}` },
  });
  router!.crossValidation.forms = [form('constant', false), form('ridge', true), form('labels', false)];
  const interval = { low: 0.005, high: 0.05, level: 0.95, method: 'sign-flip test over tasks' };
  const { from } = measured;
  router!.regret = { id: 'router.regret', value: 0.025, n: 200, unit: 'difference', interval, from };
  router!.latency = { id: 'router.latency', value: 0.214, n: 200, unit: 'milliseconds', from };
  router!.choices![1]!.successRate = { ...measured, id: 'router.choices.one.success_rate', value: 0.75, n: 61 };
  return draft;
}

test('what a learned router compared, its regret and its latency are on the page and the terminal', () => {
  const report = completeReport(summed());
  const { html } = renderReport({ report });
  for (const text of ['ridge, kept', 'Regret: ', 'Choosing takes', '0.21 ms', '<b>75.0%</b>', 'n 61'])
    expect(html).toContain(text);
  const terminal = terminalTable(report).replaceAll(/\s+/g, ' ');
  expect(terminal).toContain('router: ridge, cross-validated 64.0% against 52.0% of');
  expect(terminal).toContain('regret on test +2.5 pt (+0.5 to +5.0); 0.21 ms a conversation');
  const texts = report.verdict.map(({ text }) => text).join('\n');
  expect(texts).toContain('Routing, by ridge, helps in cross-validation');
  expect(texts).toContain(
    'With the best option for every test task success would be 2.5 points higher (95% interval +0.5 to +5.0, n 200).',
  );
});

test('a routed policy that another sample of the best options does not beat has its regret with its sign', () => {
  const draft = summed();
  const { regret } = draft.router!;
  regret!.value = -0.03;
  Object.assign(regret!.interval!, { low: -0.08, high: 0.02 });
  expect(verdict(draft).map(({ text }) => text)).toContain(
    'The routed policy cannot be told from the best option for every test task: -3.0 pt to that (95% interval -8.0 to +2.0, n 200).',
  );
});

test('of many sums the best stand among the arms, the others are folded', () => {
  const report = completeReport(summed());
  const { html } = renderReport({ report });
  const [page, folded] = html.split('2 more sums of adapters');
  for (const n of [0, 2, 4]) expect(page).toContain(`sum_number_${n}</td>`);
  for (const n of [1, 3]) {
    expect(page).not.toContain(`sum_number_${n}</td>`);
    expect(folded).toContain(`sum_number_${n}</td>`);
  }
  const lines = terminalTable(report).split('\n');
  expect(lines.filter((text) => /^comp\S+…\S+\+\S+/.test(text))).toHaveLength(3);
  expect(lines).toContain('2 more sums of adapters, 50.0% to 60.0%: all of them in the page');
  expect(lines.filter((text) => text.length > 99)).toEqual([]);
});

/** What a language model really answered, played through the real client, finds what was planted. */
import { analyseRecorded, readEvaluation } from '../../support/analyse-recorded';
import { readTruth } from '../../support/fixture-truth';
import { referenceLabels } from '../../support/reference-labels';
import { scoreAnalysis } from '../../support/score-analysis';

jest.setTimeout(180_000);

/** The number of selected capabilities. */
const sets = [
  ['shop-base', 3],
  ['tau2-retail', 4],
] as const;

it.each(sets)('%s: selects what was planted and nothing else, with labels that agree', async (set, many) => {
  const { fixture, capabilities: mapping, selection: rule } = readEvaluation(set);
  const truth = readTruth(fixture);
  const analysis = await analyseRecorded({ set });
  const reference = referenceLabels({ ...analysis, truth });
  const score = scoreAnalysis({ mapping, planted: truth.planted, rule, reference, ...analysis });
  expect(score).toMatchObject({ precision: 1, recall: 1, mistaken: [] });
  const selected = Object.values(score.capabilities).filter((one) => one.selected);
  expect(selected).toHaveLength(many);
  for (const { agreementLacking } of selected) expect(agreementLacking).toBeGreaterThan(0.6);
});

/** What a language model really answered, played through the real client: it finds what was planted, and its environments pass every check. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { analyseRecorded, discoverRecorded, readEvaluation } from '../../support/analyse-recorded';
import { readTruth } from '../../support/fixture-truth';
import { recordedFolder } from '../../support/recorded-set';
import { referenceLabels } from '../../support/reference-labels';
import { scoreAnalysis } from '../../support/score-analysis';
import { writeRecorded } from '../../support/write-recorded';

jest.setTimeout(180_000);

/** How many are selected, and their share of what was planted. In ToolSandbox's set one of four was split into two, each too rare. */
const sets = [
  ['shop-base', 3, 1],
  ['shop-ask-refuse-tell', 3, 1],
  ['shop-compute-refuse-tell', 3, 1],
  ['tau2-retail', 4, 1],
  ['toolsandbox', 3, 0.75],
] as const;

it.each(sets)('%s: selects what was planted and nothing else, with labels that agree', async (set, many, recall) => {
  const { fixture, capabilities: mapping, selection: rule } = readEvaluation(set);
  const truth = readTruth(fixture);
  const analysis = await analyseRecorded({ set });
  const reference = referenceLabels({ ...analysis, truth });
  const score = scoreAnalysis({ mapping, planted: truth.planted, rule, reference, ...analysis });
  expect(score).toMatchObject({ precision: 1, recall, mistaken: [] });
  const selected = Object.values(score.capabilities).filter((one) => one.selected);
  expect(selected).toHaveLength(many);
  for (const { agreementLacking } of selected) expect(agreementLacking).toBeGreaterThan(0.6);
});

const modulesOf = (set: string): string => join(recordedFolder, set, 'modules');

it.each(['shop-base', 'tau2-retail', 'toolsandbox'])(
  '%s: the recorded replies give the modules that are kept',
  async (set) => {
    const target = await discoverRecorded({ set });
    const kept = readdirSync(modulesOf(set)).map((file) => file.replace(/\.js$/, ''));
    const lacking = target.discovery.candidates;
    const { environments } = await writeRecorded({ set, target, lacking, only: kept });
    expect(environments.map(({ name }) => name).sort()).toEqual(kept.sort());
    for (const { name, rounds, module } of environments) {
      expect({ name, findings: rounds.at(-1)?.findings }).toEqual({ name, findings: [] });
      expect(module?.source).toBe(readFileSync(join(modulesOf(set), `${name}.js`), 'utf8'));
    }
  },
);

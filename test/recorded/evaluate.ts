/**
 * Evaluates the analyst that asks a language model against what was planted, from recorded replies:
 *
 *   node -r ./test/support/register.cjs test/recorded/evaluate.ts SET... [--record FOLDER]
 *
 * SET is a folder of test/recorded with an evaluation.yaml. One JSON object a set; rates are fractions.
 */
import { parseArgs } from 'node:util';
import { analyseRecorded, readEvaluation } from '../support/analyse-recorded';
import { readTruth } from '../support/fixture-truth';
import { referenceLabels } from '../support/reference-labels';
import { scoreAnalysis } from '../support/score-analysis';

const rounded = (_: string, value: unknown): unknown =>
  typeof value === 'number' ? Number(value.toFixed(3)) : value === undefined ? null : value;

async function evaluate(set: string, record: string | undefined): Promise<object> {
  const { fixture, capabilities: mapping, selection: rule } = readEvaluation(set);
  const truth = readTruth(fixture);
  const analysis = await analyseRecorded({ set, ...(record !== undefined && { record }) });
  const { discovery, passes, selection, requests, spent } = analysis;
  const reference = referenceLabels({ ...analysis, truth });
  const named = new Set(Object.values(mapping).flat());
  return {
    set,
    fixture,
    planted: truth.planted,
    ...scoreAnalysis({ mapping, planted: truth.planted, passes, selection, reference, rule }),
    candidates: selection.capabilities.map(({ name, coverage, delta, votes, selected }) => {
      const definition = discovery.candidates.find((one) => one.name === name)?.definition;
      return { name, definition, coverage: coverage.mean, delta: delta.mean, votes, selected };
    }),
    /** To be looked at by hand: does one of them mean a planted skill? */
    unmapped: discovery.candidates.map(({ name }) => name).filter((name) => !named.has(name)),
    faults: discovery.faults.map(({ of, what }) => ({ of, what })),
    requests: requests.length,
    spent,
  };
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { record: { type: 'string' } } });
  if (positionals.length === 0) throw new Error('evaluate.ts SET... [--record FOLDER]: name a folder of test/recorded');
  for (const set of positionals) console.log(JSON.stringify(await evaluate(set, values.record), rounded, 2));
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});

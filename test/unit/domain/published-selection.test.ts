/**
 * The labels that the authors of TRACE published with their code (github.com/ScalingIntelligence/TRACE, arXiv 2604.05336), as counts: ten passes over 164
 * trajectories of tau2-bench. They select the capabilities that the authors report, with the same figures.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { selectionRuleSchema } from '../../../src/domain/campaign';
import type { LabelPass } from '../../../src/domain/capability';
import { selectCapabilities } from '../../../src/domain/selection';

function readTable(name: string): Record<string, string>[] {
  const text = readFileSync(join(__dirname, '../../fixtures/published-selection', name), 'utf8');
  const [head = [], ...rows] = text
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));
  return rows.map((row) => Object.fromEntries(head.map((column, n) => [column, row[n]!])));
}

type Lists = LabelPass['labels'][string];

/** Puts the first trajectories into the first list, and so on. */
function listsOf(row: Record<string, string>): Lists {
  const lists = ['failed', 'passed'].flatMap((outcome) => {
    let used = 0;
    return ['lacking', 'present', 'na'].map((label) => {
      const count = Number(row[`${label}_${outcome}`]);
      used += count;
      return [`${label}_${outcome}`, Array.from({ length: count }, (_, n) => `${outcome}${used - count + n}`)];
    });
  });
  return Object.fromEntries(lists) as Lists;
}

test('published label counts select the published capabilities with their figures', () => {
  const rows = readTable('label-counts.tsv');
  const passes = [...new Set(rows.map(({ run }) => run))].map((run, attempt): LabelPass => {
    const own = rows.filter((row) => row['run'] === run);
    const totals = { total_failed: Number(own[0]!['total_failed']), total_passed: Number(own[0]!['total_passed']) };
    return { attempt, totals, labels: Object.fromEntries(own.map((row) => [row['capability']!, listsOf(row)])) };
  });
  const { capabilities } = selectCapabilities({ passes, rule: selectionRuleSchema.parse({}) });
  const near = (text: string | undefined) => expect.closeTo(Number(text), 4) as number;
  expect(capabilities.filter(({ selected }) => selected)).toEqual(
    readTable('selected.tsv').map((row) =>
      expect.objectContaining({
        name: row['skill'],
        coverage: { mean: near(row['mean_cov']), std: near(row['std_cov']) },
        delta: { mean: near(row['mean_delta']), std: near(row['std_delta']) },
        votes: Number(row['n_runs_passed']),
        passes: Number(row['n_runs_total']),
      }),
    ),
  );
});

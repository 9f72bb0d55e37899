/**
 * What scripted policies get that are right to a degree, for every module that is kept, as the table of docs/results.md:
 *
 *   node -r ./test/support/register.cjs test/recorded/grade-modules.ts [--seeds 40]
 */
import { parseArgs } from 'node:util';
import { readFileSync } from 'node:fs';
import { gradeModule, type Grade } from '../support/graded-policies';
import { keptModules } from '../support/recorded-set';

/** The columns, each with the policies that it is the mean of. */
const columns: [string, RegExp][] = [
  ['nothing', /^nothing$/],
  ['looks up only', /^looks up/],
  ['the first of more writes', /^the first/],
  ['another value in a write', /^the solution with another/],
  ['no last words', /without its last words$/],
  ['whole', /^the whole solution$/],
];

/** Over all episodes of these policies; a dash where there are none. */
function mean(grades: readonly Grade[]): string {
  const episodes = grades.reduce((sum, { seeds }) => sum + seeds, 0);
  if (episodes === 0) return '-';
  return (grades.reduce((sum, { reward, seeds }) => sum + reward * seeds, 0) / episodes).toFixed(2);
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { seeds: { type: 'string', default: '40' } } });
  const row = (cells: readonly string[]) => console.log(`| ${cells.join(' | ')} |`);
  row(['module', ...columns.map(([title]) => title)]);
  row(['---', ...columns.map(() => '---')]);
  for (const { name, file } of keptModules()) {
    const { ladder, flawed } = await gradeModule({ source: readFileSync(file, 'utf8'), seeds: Number(values.seeds) });
    const of = (pattern: RegExp) => [...ladder, ...flawed].filter(({ policy }) => pattern.test(policy));
    row([
      `\`${name.replace('/modules/', ': ').replace(/\.js$/, '')}\``,
      ...columns.map(([, pattern]) => mean(of(pattern))),
    ]);
  }
}

main().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});

/** What each adapter does to the tasks of the others: success by the planted skills that a task needs, which only the shop knows. */
import type { Run } from '../../src/report/comparison';
import type { Finished } from '../campaigns';
import { spanText, type Table } from '../tables';
import { armsSpecs, type Place, placesOf } from '../places';
import { rowsOf, runOf } from '../rows';
import { unionOf } from '../selection';
import type { Section, Study } from '../study';
import { neededBy, plantedIn } from '../truth';

export const interference: Study = {
  name: 'interference',
  async run(context): Promise<Section> {
    const tables: Record<string, Table> = {};
    for (const place of await placesOf(context)) {
      const { finished, sources } = await context.campaigns.all(armsSpecs(place, context.settings.seeds));
      tables[place.name] = { ...bySkills(place, finished), campaigns: sources };
    }
    return { tables };
  },
};

function bySkills({ base, parameters }: Place, finished: readonly Finished[]): Table {
  const planted = plantedIn(base.path).skills;
  const needed = (task: string) => neededBy({ task, planted, parameters });
  const runs = finished.map(runOf);
  const names = unionOf(runs.map(({ matrix }) => matrix.options));
  const count = (group: string) => group.split(' and ').length;
  const groups = unionOf(runs.map(({ matrix }) => matrix.tasks.map(needed))).sort(
    (a, b) => Number(a !== 'none') - Number(b !== 'none') || count(a) - count(b),
  );
  const columns = groups.map((group) =>
    rowsOf({ runs: runs.map((run) => onTasks(run, (task) => needed(task) === group)), names, against: ['base'] }),
  );
  return {
    head: ['policy', ...groups.map((group, n) => `${group} (n ${columns[n]?.[0]?.success?.tasks ?? 0} a seed)`)],
    rows: names.map((name, n) => [
      name,
      ...columns.map((rows) => {
        const difference = rows[n]?.differences[0]?.difference;
        const toBase = difference ? `; minus base ${spanText(difference, 'difference')}` : '';
        return `${spanText(rows[n]?.success, 'fraction')}${toBase}`;
      }),
    ]),
  };
}

/** The run as if the campaign had been evaluated on these tasks alone. */
function onTasks({ matrix: { tasks, options, outcomes }, ...run }: Run, isIn: (task: string) => boolean): Run {
  const kept = tasks.flatMap((task, n) => (isIn(task) ? [{ task, row: outcomes[n] ?? [] }] : []));
  const matrix = { options, tasks: kept.map(({ task }) => task), outcomes: kept.map(({ row }) => row) };
  return { ...run, matrix };
}

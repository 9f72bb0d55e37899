/** Solver matrix: one strip an option, one column a task; tasks are sorted so that those solved by the same options lie together. */
import type { Arm, SolverMatrix } from '../model';
import { percent } from '../format';
import { markup, type Markup } from '../markup';
import { LABELS, rowLabel, svg, text } from './scale';

const left = LABELS;
const width = 520;
const rowHeight = 26;
const stripHeight = 20;
const top = 24;

type Cell = number | null;

/** Rows of outcomes by task, most widely solved first, then by pattern from the first option on. */
const sortedOutcomes = ({ outcomes }: SolverMatrix): Cell[][] => {
  const total = (row: Cell[]): number => row.reduce<number>((sum, cell) => sum + (cell ?? 0), 0);
  return [...outcomes].sort((a, b) => {
    for (let i = 0; i < a.length; i++) {
      const difference = (b[i] ?? -1) - (a[i] ?? -1);
      if (difference !== 0) return difference;
    }
    return total(b) - total(a);
  });
};

/** Neighbouring equal cells as one: the page stays small with hundreds of tasks. */
const runs = (cells: readonly Cell[]): { from: number; to: number; cell: Cell }[] => {
  const found: { from: number; to: number; cell: Cell }[] = [];
  cells.forEach((cell, i) => {
    const last = found.at(-1);
    if (last !== undefined && last.cell === cell) last.to = i + 1;
    else found.push({ from: i, to: i + 1, cell });
  });
  return found;
};

export const solverMatrixPlot = ({ matrix, arms }: { matrix: SolverMatrix; arms: readonly Arm[] }): Markup => {
  const routed = arms.find(({ role }) => role === 'routed')?.name;
  const sorted = sortedOutcomes(matrix);
  const unit = sorted.length === 0 ? 0 : width / sorted.length;
  return svg(
    { width: 900, height: top + matrix.options.length * rowHeight + 24, label: 'Which option solves which task' },
    text(
      { x: left, y: 14, class: 'tick' },
      `${sorted.length} tasks, those that ${matrix.options[0] ?? 'no option'} solves first`,
    ),
    text({ x: left + width + 16, y: 14, class: 'tick' }, 'solved'),
    matrix.options.map((option, column) => {
      const y = top + column * rowHeight;
      const cells = sorted.map((row) => row[column] ?? null);
      const scored = cells.filter((cell) => cell !== null);
      const solved = scored.reduce((sum, cell) => sum + cell, 0);
      const share = scored.length === 0 ? 'nothing scored' : `${percent(solved / scored.length)} of ${scored.length}`;
      return markup`<g><title>${option}: ${share}</title>${rowLabel({ y: y + 14, name: option, strong: option === routed })}
<rect x="${left}" y="${y}" width="${width}" height="${stripHeight}" class="strip"/>${runs(cells).flatMap(
        ({ from, to, cell }) =>
          cell === 0
            ? []
            : [
                markup`<rect x="${left + from * unit}" y="${y}" width="${(to - from) * unit}" height="${stripHeight}" class="${cell === null ? 'unscored' : 'solved'}" ${cell !== null && cell < 1 && markup`opacity="${cell}"`}/>`,
              ],
      )}${text({ x: left + width + 16, y: y + 14, class: 'quiet' }, share)}</g>`;
    }),
  );
};

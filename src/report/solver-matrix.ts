/** What the solver matrix says about tasks that trace does not solve: no adapter for them, or the wrong choice among those there are. */
import type { ReportDraft, SolverMatrix, VerdictSentence } from '../domain/report';

/** Options that are not adapters of this campaign: the routed policy and the baseline arms. */
const notRoutable = new Set(['trace', 'union_ceiling', 'grpo_target', 'grpo_single', 'gepa']);

/** Columns by option, tasks in the matrix's order; null where nothing was scored. Solved: in more than half of the trials. */
const solvedBy = (matrix: SolverMatrix): Map<string, (boolean | null)[]> =>
  new Map(
    matrix.options.map((option, column) => [
      option,
      matrix.outcomes.map((row) => {
        const share = row[column] ?? null;
        return share === null ? null : share > 0.5;
      }),
    ]),
  );

/**
 * Splits the tasks that trace fails: those that base or an adapter alone solves (the router's loss), and those that none solves (a
 * capability that is lacking still, or several at once), with what grpo_target does on the latter. Empty without an inline matrix.
 */
export const whereTraceFails = ({ solverMatrix }: ReportDraft): VerdictSentence[] => {
  if (solverMatrix?.inline === undefined) return [];
  const columns = solvedBy(solverMatrix.inline);
  const trace = columns.get('trace');
  if (trace === undefined) return [];
  const singles = [...columns].filter(([option]) => !notRoutable.has(option)).map(([, solved]) => solved);
  const failed = trace.flatMap((solved, task) => (solved === false ? [task] : []));
  if (failed.length === 0) return [];
  const beyond = failed.filter((task) => !singles.some((solved) => solved[task]));
  const behind = [solverMatrix.from.sha256];
  const split =
    `Of ${failed.length} tasks that trace fails, base or an adapter alone solves ${failed.length - beyond.length} (lost by routing) ` +
    `and ${beyond.length} are solved by none of them (no adapter for what they need).`;
  const target = columns.get('grpo_target');
  const taken = target === undefined ? 0 : beyond.filter((task) => target[task]).length;
  return [{ text: taken > 0 ? `${split} grpo_target solves ${taken} of these ${beyond.length}.` : split, behind }];
};

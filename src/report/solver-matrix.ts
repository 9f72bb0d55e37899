/** What the solver matrix says about tasks that the routed policy fails: no adapter for them, or the wrong choice among those there are. */
import type { ReportDraft, VerdictSentence } from '../domain/report';
import type { Arm, SolverMatrix } from '../domain/reported-arms';

/** Tasks in the matrix's order; null where nothing was scored. */
type Column = (boolean | null)[];

/** Columns by option. Solved: in more than half of the trials. */
const solvedBy = (matrix: SolverMatrix): Map<string, Column> =>
  new Map(
    matrix.options.map((option, column) => [
      option,
      matrix.outcomes.map((row) => {
        const share = row[column] ?? null;
        return share === null ? null : share > 0.5;
      }),
    ]),
  );

/** What the router may choose, but for what it could not try. */
const optionsOf = ({ router }: ReportDraft): ((arm: Arm) => boolean) => {
  const untried = new Set(router?.failed?.map(({ name }) => name));
  return ({ name, role, routable }) =>
    !untried.has(name) && (role === 'base' || role === 'adapter' || role === 'sum' || routable === true);
};

/**
 * Splits the tasks that the routed policy fails: those that an option alone solves (another choice, or another sample), and those that none solves (a
 * capability that is lacking still, or several at once), with what each other baseline does on the latter. Empty without an inline matrix.
 */
export const whereRoutingFails = (report: ReportDraft): VerdictSentence[] => {
  const { solverMatrix, arms = [] } = report;
  const isOption = optionsOf(report);
  const routed = arms.find(({ role }) => role === 'routed');
  if (solverMatrix?.inline === undefined || routed === undefined) return [];
  const columns = solvedBy(solverMatrix.inline);
  const withColumn = (is: (arm: Arm) => boolean): { name: string; solved: Column }[] =>
    arms.filter(is).flatMap(({ name }) => {
      const solved = columns.get(name);
      return solved === undefined ? [] : [{ name, solved }];
    });
  const options = withColumn(isOption);
  const failed = (columns.get(routed.name) ?? []).flatMap((solved, task) => (solved === false ? [task] : []));
  if (failed.length === 0) return [];
  const beyond = failed.filter((task) => !options.some(({ solved }) => solved[task]));
  const behind = [solverMatrix.from.sha256];
  const named = (role: Arm['role']) => withColumn((arm) => arm.role === role && isOption(arm)).map(({ name }) => name);
  const any = (role: Arm['role'], word: string) => (named(role).length > 0 ? [word] : []);
  const words = [...named('base'), ...any('adapter', 'an adapter'), ...any('sum', 'a sum'), ...named('baseline')];
  const anyOf = [words.slice(0, -1).join(', '), words.at(-1)].filter(Boolean).join(' or ');
  const split =
    `Of ${failed.length} tasks that ${routed.name} fails, ${anyOf} alone solves ${failed.length - beyond.length} (lost by the choice, or by chance where answers are sampled) ` +
    `and ${beyond.length} are solved by none of them (no adapter for what they need).`;
  const others = withColumn((arm) => arm.role === 'baseline' && !isOption(arm)).flatMap(({ name, solved }) => {
    const taken = beyond.filter((task) => solved[task]).length;
    return taken > 0 ? [{ text: `${name} solves ${taken} of these ${beyond.length}.`, behind }] : [];
  });
  return [{ text: split, behind }, ...others];
};

/** The section on the router: what it was chosen by, what it chose, and where it was wrong. */
import { noSumsText } from '../adapters';
import { type Blocks, details, grid, heading, note, paragraph, table } from '../blocks';
import type { Arm, Report, VerdictSentence } from '../model';
import { say } from '../recommendation';

const FORMS =
  'All forms on the same folds of the train split. constant: the best single option, chosen within the folds. Another form is kept only if its gain over constant is more than chance: one paired permutation test over the tasks.';

export function routerBlocks(report: Report): Blocks {
  const { router, capabilities } = report;
  if (router === undefined) return [];
  const { crossValidation: cv, choices = [], misses, errors, regret, latency, constant } = router;
  const noSums = noSumsText(router, capabilities);
  const everything = constant === undefined ? '' : `, gives every conversation to ${constant}`;
  const forms = cv.forms?.map(({ form, successRate, kept }) => [`${form}${kept ? ', kept' : ''}`, successRate]);
  return details(
    heading('Router'),
    paragraph(
      `Kind: ${router.kind}${everything}. In cross-validation on the train split it ${router.helps ? 'helps' : 'does not help'}.`,
    ),
    noSums !== undefined && paragraph(`No adapters were added up: ${noSums}.`),
    grid(
      ['policy', 'cross-validated success'],
      [
        ...(forms ?? [['routed', cv.routed]]),
        [`best single: ${cv.bestSingle.option}`, cv.bestSingle.successRate],
        ['base', cv.base],
        ['union ceiling', cv.unionCeiling],
      ],
    ),
    forms && note(FORMS),
    heading('Choices on the test split', 3),
    table(choices, [
      ['option', ({ option }) => option],
      ['share of conversations', ({ share }) => share],
      ['success of these', ({ successRate }) => successRate],
      choices.some(({ probability }) => probability) && ['mean probability', ({ probability }) => probability],
    ]),
    ...(misses && misses.count.value ? missedBlocks(misses) : []),
    ...whereRoutingFails(report).map(({ text, behind }) => paragraph([text, { lineage: behind }])),
    regret &&
      paragraph(['Regret: what the best option for every test task would have gained over the routed policy', regret]),
    latency && paragraph(['Choosing takes, median of a conversation', latency]),
    errors && paragraph(['Test rollouts that broke because the router could not choose:', errors]),
  );
}

function missedBlocks({ count, shown }: NonNullable<NonNullable<Report['router']>['misses']>): Blocks {
  return [
    heading('When it was wrong', 3),
    paragraph(['Conversations that failed on what it chose, where another option solved the task:', count]),
    table(shown, [
      ['conversation', ({ rollout }) => ({ rollout })],
      ['task', ({ task }) => task],
      ['chose', ({ chosen }) => chosen],
      shown.some(({ probability }) => probability !== undefined) && [
        'with probability',
        ({ probability }) => (probability === undefined ? undefined : probability.toFixed(2)),
      ],
      ['solved by', ({ solvedBy }) => solvedBy.join(', ')],
    ]),
  ];
}

/**
 * Splits the tasks that the routed policy fails: those that an option alone solves (another choice, or another sample), and those that none solves (a
 * capability that is lacking still, or several at once), with what each other baseline does on the latter. Empty without an inline matrix.
 */
function whereRoutingFails({ solverMatrix, router, arms = [] }: Report): VerdictSentence[] {
  const { inline: matrix, from } = solverMatrix ?? {};
  const routed = arms.find(({ role }) => role === 'routed');
  if (!matrix || !from || !routed) return [];
  // More than half of the trials; null where nothing was scored.
  const solves = ({ name }: Arm, task: number): boolean | null => {
    const share = matrix.outcomes[task]?.[matrix.options.indexOf(name)] ?? null;
    return share === null ? null : share > 0.5;
  };
  const untried = new Set(router?.failed?.map(({ name }) => name));
  const isOption = ({ name, role, routable }: Arm): boolean =>
    !untried.has(name) && (['base', 'adapter', 'sum'].includes(role) || routable === true);
  const known = arms.filter(({ name }) => matrix.options.includes(name));
  const options = known.filter(isOption);
  const failed = matrix.tasks.flatMap((_, task) => (solves(routed, task) === false ? [task] : []));
  if (failed.length === 0) return [];
  const solved = failed.filter((task) => options.some((arm) => solves(arm, task)));
  const beyond = failed.filter((task) => options.every((arm) => solves(arm, task) === false));
  const unscored = failed.length - solved.length - beyond.length;

  const named = (role: Arm['role']) => options.filter((arm) => arm.role === role).map(({ name }) => name);
  const any = (role: Arm['role'], word: string) => (named(role).length > 0 ? [word] : []);
  const words = [...named('base'), ...any('adapter', 'an adapter'), ...any('sum', 'a sum'), ...named('baseline')];
  const anyOf = [words.slice(0, -1).join(', '), words.at(-1)].filter(Boolean).join(' or ');
  const others = known.filter((arm) => arm.role === 'baseline' && !isOption(arm));
  return [
    say(
      `Of ${failed.length} tasks that ${routed.name} fails, ${anyOf} alone solves ${solved.length} (lost by the choice, or by chance where answers are sampled) ` +
        `and ${beyond.length} are solved by none of them (no adapter for what they need)${unscored > 0 ? `; of ${unscored} not all of them were scored` : ''}.`,
      from.sha256,
    ),
    ...others.flatMap((arm) => {
      const taken = beyond.filter((task) => solves(arm, task)).length;
      return taken > 0 ? [say(`${arm.name} solves ${taken} of these ${beyond.length}.`, from.sha256)] : [];
    }),
  ];
}

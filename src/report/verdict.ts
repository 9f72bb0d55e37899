/**
 * The verdict: plain sentences that follow from the figures by fixed rules. Invariant: "above" and "below" are said only where the difference
 * counts (`direction`), "ahead" only where other trainings would not change it (recommendation.ts); nothing here is judged by a person or a model.
 */
import type { Figure } from '../domain/figure';
import type { Arm, ReportDraft, SolverMatrix, VerdictSentence } from './model';
import { direction } from '../domain/paired-statistics';
import { policyNames } from '../domain/policies';
import { differenceText, intervalText, valueText, wholeNumber } from './format';
import { comparisonsOf, points, recommendationOf, say, standingSentence } from './recommendation';
import { capabilitySentence, noSumsText } from './adapters';
import { causesText } from '../domain/rollout';

const toBase = (arm: string, against: string, difference: Figure): VerdictSentence => {
  if (difference.value === null) return say(`${arm} and ${against} share no evaluated task.`, difference);
  const way = direction(difference.interval);
  const figures = `(${differenceText(difference)})`;
  const text =
    way === undefined
      ? `${arm} cannot be told from ${against}: ${valueText(difference)} ${figures}.`
      : `${arm} is ${points(difference.value)} ${way === 'up' ? 'above' : 'below'} ${against} ${figures}.`;
  return say(text, difference);
};

const armSentences = (arms: readonly Arm[]): VerdictSentence[] =>
  arms.flatMap((arm) => {
    if (arm.status === 'failed') {
      const what = arm.role === 'bound' ? `${arm.name} is not known` : `Arm ${arm.name} failed`;
      return [say(`${what}: ${arm.reason}.`)];
    }
    const rate = arm.successRate;
    if (arm.role === 'base' && rate !== undefined && rate.value !== null)
      return [say(`${arm.name} solves ${valueText(rate)} of ${rate.n} test tasks (${intervalText(rate)}).`, rate)];
    const same = arms.find(({ name }) => name === arm.sameAs);
    if (same?.successRate && rate) {
      const [own, other] = [rate, same.successRate];
      return [
        say(
          `${arm.name} and ${same.name} are one policy: ${valueText(own)} and ${valueText(other)} are two samples of it.`,
          own,
          other,
        ),
      ];
    }
    // Single adapters have sentences of their own; a bound is no policy.
    if (arm.differenceToBase === undefined || (arm.role !== 'routed' && arm.role !== 'baseline')) return [];
    const against = arms.find(({ role }) => role === 'base')?.name ?? 'base';
    return [toBase(arm.name, against, arm.differenceToBase)];
  });

/** `3,072 (trained on to 4,608)`. */
const trainingText = ({ trainingRollouts, trainedTo }: Arm): string =>
  valueText(trainingRollouts) + (trainedTo === undefined ? '' : ` (trained on to ${valueText(trainedTo)})`);

const comparisonSentences = (report: ReportDraft): VerdictSentence[] =>
  (comparisonsOf(report) ?? []).flatMap((comparison) => {
    const { arm, against } = comparison;
    const [own, other] = [arm, against].map((name) => report.arms?.find((one) => one.name === name));
    const sentence = standingSentence(comparison);
    if (own === undefined || other === undefined) return [sentence];
    const all = (one: Arm): string => `${one.name} ${valueText(one.allRollouts)}`;
    const rollouts =
      `Training rollouts: ${arm} ${trainingText(own)}, ${against} ${trainingText(other)}; ` +
      `all rollouts to come to it: ${all(own)}, ${all(other)}.`;
    return [sentence, say(rollouts, ...[own, other].flatMap((one) => [one.trainingRollouts, one.allRollouts]))];
  });

type Selection = NonNullable<ReportDraft['selection']>;

const selectionSentence = (selection: ReportDraft['selection']): VerdictSentence[] => {
  if (selection === undefined) return [];
  const selected = selection.candidates.filter((c) => c.selected).map((c) => c.name);
  const of = `of ${selection.candidates.length} candidate${selection.candidates.length === 1 ? '' : 's'}`;
  const behind = selection.from.map((ref) => ref.sha256);
  const how = selection.passes === 0 ? ', given by the analyst without labeling' : '';
  const why = selection.reason ?? selection.decision;
  const because = why === undefined ? '' : ` (${why})`;
  const failedPasses = failedPassesText(selection);
  return [
    selected.length > 0
      ? say(`Selected ${selected.length} ${of}${how}: ${selected.join(', ')}.`, ...behind)
      : say(`No capability was selected ${of}${because}.`, ...behind),
    ...(failedPasses === undefined ? [] : [say(failedPasses, ...behind)]),
    ...agreementSentence(selection),
    ...faultsSentence(selection),
  ];
};

/** Krippendorff: conclusions from data below it are not even tentative. */
const LEAST_AGREEMENT = 0.667;

const agreementSentence = ({ candidates }: Selection): VerdictSentence[] => {
  const low = candidates.flatMap(({ name, selected, agreement }) =>
    selected && agreement && agreement.value !== null && agreement.value < LEAST_AGREEMENT ? [{ name, agreement }] : [],
  );
  if (low.length === 0) return [];
  const said = low.map(({ name, agreement }) => `${name} (${valueText(agreement)}, n ${agreement.n})`).join(', ');
  const text = `The labeling passes agree little on ${said}: Krippendorff's alpha is below ${LEAST_AGREEMENT}.`;
  return [say(text, ...low.map(({ agreement }) => agreement))];
};

/** Undefined where none failed. */
export function failedPassesText({ passes, failedPasses }: Selection): string | undefined {
  const { length } = failedPasses;
  if (length === 0) return undefined;
  const reasons = [...new Set(failedPasses.map(({ reason }) => reason))].join('; ');
  return `${length} of ${passes} labeling passes failed and ${length === 1 ? 'is' : 'are'} left out: ${reasons}.`;
}

const faultsSentence = ({ faults }: Selection): VerdictSentence[] => {
  const { environment, user } = faults?.trajectories ?? {};
  if (!environment || !user || !(environment.value || user.value)) return [];
  const [broken, misled] = [valueText(environment), valueText(user)];
  const text = `${broken} of ${environment.n} failed trajectories are put down to the environment, ${misled} to the simulated user.`;
  return [say(text, environment, user)];
};

/** `12 rollouts broke and are in no figure of success: 12 BadEnvironment, as at task n-7: ...`. */
const brokenSentence = ({ rollouts }: ReportDraft): VerdictSentence[] => {
  const broken = rollouts?.broken.value ?? 0;
  if (!rollouts || broken === 0) return [];
  const causes = rollouts.brokenByError.map(({ errorType: type, rollouts: { value }, ...at }) => {
    return { type, ...at, count: value ?? 0 };
  });
  const why = causes.length > 0 ? `: ${causesText(causes, broken)}` : '';
  const which = broken === 1 ? 'rollout broke and is' : 'rollouts broke and are';
  return [say(`${wholeNumber(broken)} ${which} in no figure of success${why}.`, rollouts.broken)];
};

/** A gate was trained on the tasks that it is then compared on: what is said of it there is too good. */
const learnedOn = (option: string): string =>
  option === policyNames.gate ? ', which learned on these very tasks' : '';

const routerSentence = ({ router, capabilities = [] }: ReportDraft): VerdictSentence[] => {
  if (router === undefined) return [];
  const { routed, bestSingle } = router.crossValidation;
  const form = router.crossValidation.forms?.find(({ kept }) => kept && router.helps)?.form;
  const by = form === undefined ? '' : `, by ${form},`;
  const verb = router.helps ? `Routing${by} helps` : 'Routing does not help';
  const text = `${verb} in cross-validation: ${valueText(routed)} against ${valueText(bestSingle.successRate)} for ${bestSingle.option} alone${learnedOn(bestSingle.option)}.`;
  const errors = router.errors?.value ?? 0;
  const gains = capabilities.flatMap(({ validation: v }) =>
    v ? [v.synthesized.difference ?? v.synthesized.after] : [],
  );
  const noSums = noSumsText(router, capabilities);
  return [
    say(text, routed, bestSingle.successRate),
    ...regretSentence(router),
    ...(noSums === undefined ? [] : [say(`No adapters were added up: ${noSums}.`, ...gains)]),
    ...(router.failed ?? []).map(({ name, reason }) => say(`The router can not choose ${name}: ${reason}.`)),
    ...(errors > 0 ? [say(`The router failed on ${wholeNumber(errors)} test rollouts.`, router.errors)] : []),
  ];
};

const regretSentence = ({ regret }: NonNullable<ReportDraft['router']>): VerdictSentence[] => {
  if (!regret || regret.value === null) return [];
  const way = direction(regret.interval);
  const best =
    way === undefined
      ? `The routed policy cannot be told from the best option for every test task: ${valueText(regret)} to that`
      : `With the best option for every test task success would be ${points(regret.value)} ${way === 'up' ? 'higher' : 'lower'}`;
  return [say(`${best} (${intervalText(regret)}, n ${regret.n}).`, regret)];
};

const reservations = (report: ReportDraft): VerdictSentence[] => {
  const { campaign, leakage } = report;
  const because = campaign.reason === undefined ? '' : `: ${campaign.reason}`;
  const ended: Partial<Record<typeof campaign.status, string>> = {
    running: `The campaign is still running (stage ${campaign.stage}).`,
    stopped_at_stage: `The campaign was stopped after stage ${campaign.stage}; later stages are absent.`,
    failed: `The campaign failed at stage ${campaign.stage}${because}.`,
  };
  const text = ended[campaign.status];
  return [
    ...(text === undefined ? [] : [say(text)]),
    ...(leakage !== undefined && !leakage.passed
      ? [
          say(
            `Leakage: ${leakage.hits.length === 1 ? '1 text contains' : `${leakage.hits.length} texts contain`} a test task; the test figures cannot be trusted.`,
            ...leakage.from.map((r) => r.sha256),
          ),
        ]
      : []),
    ...brokenSentence(report),
  ];
};

/** The sentences in the order of the page: what to ship, then the outcome, then why, then reservations. What the first says is not repeated. */
export const verdict = (report: ReportDraft): VerdictSentence[] => {
  const first = recommendationOf(report);
  const others = sentences(report).filter(({ text }) => !first?.text.includes(text));
  return first === undefined ? others : [say(first.text, ...first.behind), ...others];
};

const sentences = (report: ReportDraft): VerdictSentence[] => [
  ...armSentences(report.arms ?? []),
  ...comparisonSentences(report),
  ...whereRoutingFails(report),
  ...routerSentence(report),
  ...selectionSentence(report.selection),
  ...(report.capabilities ?? []).flatMap((c) => capabilitySentence(c) ?? []),
  ...reservations(report),
];

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
const whereRoutingFails = (report: ReportDraft): VerdictSentence[] => {
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

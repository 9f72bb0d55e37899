/**
 * The verdict: plain sentences that follow from the figures by fixed rules. Invariant: "above" and "below" are said only where the difference
 * counts (`direction`), "ahead" only where other trainings would not change it (recommendation.ts); nothing here is judged by a person or a model.
 */
import { direction } from '../domain/statistics';
import { policyNames } from '../domain/policies';
import { causesText } from '../domain/rollout';
import { capabilitySentence, noSumsText } from './adapters';
import { differenceText, intervalText, valueText, wholeNumber } from './format';
import type { Arm, ReportDraft, ReportedComparison, VerdictSentence } from './model';
import { type Judged, points, say, type shippedOf, standingSentence } from './recommendation';

type Sentences = readonly (VerdictSentence | undefined | false)[];

/** The sentences in the order of the page: what to ship, then the outcome, then why, then reservations. What the first says is not repeated. */
export function verdict(report: Judged, shipped: ReturnType<typeof shippedOf>): VerdictSentence[] {
  const { arms = [], comparisons = [], capabilities = [] } = report;
  const sentences: Sentences = [
    shipped && say(shipped.recommendation.text, ...shipped.recommendation.behind),
    ...arms.map((arm) => armSentence(arm, arms)),
    ...comparisons.flatMap((one) => [
      !shipped?.told.includes(one) && standingSentence(one),
      rolloutsSentence(one, arms),
    ]),
    ...whereRoutingFails(report),
    ...routerSentences(report),
    ...selectionSentences(report.selection),
    ...capabilities.map(capabilitySentence),
    ...reservations(report),
  ];
  return sentences.filter((one) => one !== undefined && one !== false);
}

/** Single adapters have sentences of their own; a bound is no policy. */
function armSentence(arm: Arm, arms: readonly Arm[]): VerdictSentence | undefined {
  const { name, role, status, successRate: rate, differenceToBase: difference } = arm;
  if (status === 'failed')
    return say(`${role === 'bound' ? `${name} is not known` : `Arm ${name} failed`}: ${arm.reason}.`);
  if (role === 'base' && rate && rate.value !== null)
    return say(`${name} solves ${valueText(rate)} of ${rate.n} test tasks (${intervalText(rate)}).`, rate);
  const same = arms.find((other) => other.name === arm.sameAs);
  if (same?.successRate && rate) {
    const rates = `${valueText(rate)} and ${valueText(same.successRate)}`;
    return say(`${name} and ${same.name} are one policy: ${rates} are two samples of it.`, rate, same.successRate);
  }
  if (!difference || (role !== 'routed' && role !== 'baseline')) return undefined;
  const base = arms.find((other) => other.role === 'base')?.name ?? 'base';
  if (difference.value === null) return say(`${name} and ${base} share no evaluated task.`, difference);
  const way = direction(difference.interval);
  const figures = `(${differenceText(difference)})`;
  const text =
    way === undefined
      ? `${name} cannot be told from ${base}: ${valueText(difference)} ${figures}.`
      : `${name} is ${points(difference.value)} ${way === 'up' ? 'above' : 'below'} ${base} ${figures}.`;
  return say(text, difference);
}

function rolloutsSentence({ arm, against }: ReportedComparison, arms: readonly Arm[]): VerdictSentence | undefined {
  const [own, other] = [arm, against].map((name) => arms.find((one) => one.name === name));
  if (!own || !other) return undefined;
  const spent = [own, other].map(({ name, trainingRollouts, trainedTo, allRollouts }) => ({
    training: `${name} ${valueText(trainingRollouts)}${trainedTo ? ` (trained on to ${valueText(trainedTo)})` : ''}`,
    all: `${name} ${valueText(allRollouts)}`,
    behind: [trainingRollouts, allRollouts],
  }));
  const training = spent.map((one) => one.training).join(', ');
  return say(
    `Training rollouts: ${training}; all rollouts to come to it: ${spent.map(({ all }) => all).join(', ')}.`,
    ...spent.flatMap(({ behind }) => behind),
  );
}

type Selection = NonNullable<ReportDraft['selection']>;

/** Krippendorff: conclusions from data below it are not even tentative. */
const LEAST_AGREEMENT = 0.667;

function selectionSentences(selection: ReportDraft['selection']): Sentences {
  if (selection === undefined) return [];
  const { candidates, passes, reason, decision, from, faults } = selection;
  const selected = candidates.filter((one) => one.selected);
  const of = `of ${candidates.length} candidate${candidates.length === 1 ? '' : 's'}`;
  const how = passes === 0 ? ', given by the analyst without labeling' : '';
  const why = reason ?? decision;
  const outcome =
    selected.length > 0
      ? `Selected ${selected.length} ${of}${how}: ${selected.map(({ name }) => name).join(', ')}.`
      : `No capability was selected ${of}${why === undefined ? '' : ` (${why})`}.`;
  const behind = from.map(({ sha256 }) => sha256);
  const failedPasses = failedPassesText(selection);

  const low = selected.flatMap(({ name, agreement }) =>
    agreement && agreement.value !== null && agreement.value < LEAST_AGREEMENT ? [{ name, agreement }] : [],
  );
  const disagreed = low.map(({ name, agreement }) => `${name} (${valueText(agreement)}, n ${agreement.n})`).join(', ');
  const { environment, user } = faults?.trajectories ?? {};
  return [
    say(outcome, ...behind),
    failedPasses !== undefined && say(failedPasses, ...behind),
    low.length > 0 &&
      say(
        `The labeling passes agree little on ${disagreed}: Krippendorff's alpha is below ${LEAST_AGREEMENT}.`,
        ...low.map(({ agreement }) => agreement),
      ),
    environment &&
      user &&
      Boolean(environment.value || user.value) &&
      say(
        `${valueText(environment)} of ${environment.n} failed trajectories are put down to the environment, ${valueText(user)} to the simulated user.`,
        environment,
        user,
      ),
  ];
}

/** Undefined where none failed. */
export function failedPassesText({ passes, failedPasses }: Selection): string | undefined {
  const { length } = failedPasses;
  const reasons = [...new Set(failedPasses.map(({ reason }) => reason))].join('; ');
  const are = length === 1 ? 'is' : 'are';
  return length === 0 ? undefined : `${length} of ${passes} labeling passes failed and ${are} left out: ${reasons}.`;
}

function routerSentences({ router, capabilities = [] }: Judged): Sentences {
  if (router === undefined) return [];
  const { helps, crossValidation, errors, failed = [] } = router;
  const { routed, bestSingle } = crossValidation;
  const form = crossValidation.forms?.find(({ kept }) => kept && helps)?.form;
  const verb = helps ? `Routing${form === undefined ? '' : ` by ${form},`} helps` : 'Routing does not help';
  // A gate was trained on the tasks that it is then compared on: what is said of it there is too good.
  const learned = bestSingle.option === policyNames.gate ? ', which learned on these very tasks' : '';
  const single = `${valueText(bestSingle.successRate)} for ${bestSingle.option} alone${learned}`;
  const gains = capabilities.flatMap(({ validation }) =>
    validation ? [validation.synthesized.difference ?? validation.synthesized.after] : [],
  );
  const noSums = noSumsText(router, capabilities);
  const broken = errors?.value ?? 0;
  return [
    say(`${verb} in cross-validation: ${valueText(routed)} against ${single}.`, routed, bestSingle.successRate),
    regretSentence(router),
    noSums !== undefined && say(`No adapters were added up: ${noSums}.`, ...gains),
    ...failed.map(({ name, reason }) => say(`The router can not choose ${name}: ${reason}.`)),
    broken > 0 && say(`The router failed on ${wholeNumber(broken)} test rollouts.`, errors),
  ];
}

function regretSentence({ regret }: NonNullable<Judged['router']>): VerdictSentence | undefined {
  if (!regret || regret.value === null) return undefined;
  const way = direction(regret.interval);
  const best =
    way === undefined
      ? `The routed policy cannot be told from the best option for every test task: ${valueText(regret)} to that`
      : `With the best option for every test task success would be ${points(regret.value)} ${way === 'up' ? 'higher' : 'lower'}`;
  return say(`${best} (${intervalText(regret)}, n ${regret.n}).`, regret);
}

function reservations({ campaign, leakage, rollouts }: Judged): Sentences {
  const leaks = leakage?.hits.length === 1 ? '1 text contains' : `${leakage?.hits.length} texts contain`;
  return [
    campaign.status === 'stopped_at_stage' &&
      say(`The campaign was stopped after stage ${campaign.stage}; later stages are absent.`),
    leakage !== undefined &&
      !leakage.passed &&
      say(
        `Leakage: ${leaks} a test task; the test figures cannot be trusted.`,
        ...leakage.from.map(({ sha256 }) => sha256),
      ),
    brokenSentence(rollouts),
  ];
}

/** `12 rollouts broke and are in no figure of success: 12 BadEnvironment, as at task n-7: ...`. */
function brokenSentence(rollouts: Judged['rollouts']): VerdictSentence | undefined {
  const broken = rollouts?.broken.value ?? 0;
  if (!rollouts || broken === 0) return undefined;
  const causes = rollouts.brokenByError.map(({ errorType: type, message, task, rollouts: { value } }) => {
    return { type, message, task, count: value ?? 0 };
  });
  const why = causes.length > 0 ? `: ${causesText(causes, broken)}` : '';
  const which = broken === 1 ? 'rollout broke and is' : 'rollouts broke and are';
  return say(`${wholeNumber(broken)} ${which} in no figure of success${why}.`, rollouts.broken);
}

/**
 * Splits the tasks that the routed policy fails: those that an option alone solves (another choice, or another sample), and those that none solves (a
 * capability that is lacking still, or several at once), with what each other baseline does on the latter. Empty without an inline matrix.
 */
function whereRoutingFails({ solverMatrix, router, arms = [] }: Judged): Sentences {
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
  const beyond = failed.filter((task) => !options.some((arm) => solves(arm, task)));

  const named = (role: Arm['role']) => options.filter((arm) => arm.role === role).map(({ name }) => name);
  const any = (role: Arm['role'], word: string) => (named(role).length > 0 ? [word] : []);
  const words = [...named('base'), ...any('adapter', 'an adapter'), ...any('sum', 'a sum'), ...named('baseline')];
  const anyOf = [words.slice(0, -1).join(', '), words.at(-1)].filter(Boolean).join(' or ');
  const others = known.filter((arm) => arm.role === 'baseline' && !isOption(arm));
  return [
    say(
      `Of ${failed.length} tasks that ${routed.name} fails, ${anyOf} alone solves ${failed.length - beyond.length} (lost by the choice, or by chance where answers are sampled) ` +
        `and ${beyond.length} are solved by none of them (no adapter for what they need).`,
      from.sha256,
    ),
    ...others.map((arm) => {
      const taken = beyond.filter((task) => solves(arm, task)).length;
      return taken > 0 && say(`${arm.name} solves ${taken} of these ${beyond.length}.`, from.sha256);
    }),
  ];
}

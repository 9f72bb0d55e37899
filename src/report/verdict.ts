/**
 * The verdict: plain sentences that follow from the figures by fixed rules. Invariant: "above", "below", "ahead" and "behind" are said
 * only where the difference counts (`direction`); nothing here is judged by a person or a model.
 */
import type { Figure } from '../domain/figure';
import type { ReportDraft, VerdictSentence } from '../domain/report';
import type { Arm } from '../domain/reported-arms';
import { direction } from '../domain/paired-statistics';
import { isLearned } from '../domain/policy-names';
import { valueText, wholeNumber } from './format';
import { testText } from './paired';
import { level, say } from './sentence';
import { capabilitySentence } from './capability-sentence';
import { whereRoutingFails } from './solver-matrix';
import { brokenText, failedPassesText, faultsText, trainingText } from './words';

const points = (difference: number): string => {
  const text = Math.abs(100 * difference).toFixed(1);
  return `${text} point${text === '1.0' ? '' : 's'}`;
};

const compare = (
  words: { arm: string; against: string; up: string; down: string },
  difference: Figure,
): VerdictSentence => {
  if (difference.value === null) return say(`${words.arm} and ${words.against} share no evaluated task.`, difference);
  const way = direction(difference.interval);
  const tested = testText(difference);
  const figures = `(${level(difference)}, n ${difference.n}${tested === undefined ? '' : `; ${tested}`})`;
  const text =
    way === undefined
      ? `${words.arm} cannot be told from ${words.against}: ${valueText(difference)} ${figures}.`
      : `${words.arm} is ${points(difference.value)} ${way === 'up' ? words.up : words.down} ${words.against} ${figures}.`;
  return say(text, difference);
};

const reversed = (difference: Figure): Figure => ({
  ...difference,
  value: difference.value === null ? null : -difference.value,
  interval: difference.interval && {
    ...difference.interval,
    low: -difference.interval.high,
    high: -difference.interval.low,
  },
  test: difference.test && { ...difference.test, better: difference.test.worse, worse: difference.test.better },
});

const armSentences = (arms: readonly Arm[]): VerdictSentence[] =>
  arms.flatMap((arm) => {
    if (arm.status === 'failed') {
      const what = arm.role === 'bound' ? `${arm.name} is not known` : `Arm ${arm.name} failed`;
      return [say(`${what}: ${arm.reason}.`)];
    }
    const rate = arm.successRate;
    if (arm.role === 'base' && rate !== undefined && rate.value !== null)
      return [say(`${arm.name} solves ${valueText(rate)} of ${rate.n} test tasks (${level(rate)}).`, rate)];
    // Single adapters are judged by their validation; a bound is no policy.
    if (arm.differenceToBase === undefined || (arm.role !== 'routed' && arm.role !== 'baseline')) return [];
    const against = arms.find(({ role }) => role === 'base')?.name ?? 'base';
    return [compare({ arm: arm.name, against, up: 'above', down: 'below' }, arm.differenceToBase)];
  });

const comparisonSentences = (report: ReportDraft): VerdictSentence[] =>
  (report.comparisons ?? []).map(({ arm, against, difference }) => {
    const named = (name: string): Arm | undefined => report.arms?.find((a) => a.name === name);
    const [own, other] = [named(arm), named(against)];
    // The one that leads is named first.
    const words = { up: 'ahead of', down: 'behind' };
    const sentence =
      direction(difference.interval) === 'down'
        ? compare({ arm: against, against: arm, ...words }, reversed(difference))
        : compare({ arm, against, ...words }, difference);
    if (own === undefined || other === undefined) return sentence;
    const all = (one: Arm): string => `${one.name} ${valueText(one.allRollouts)}`;
    const rollouts =
      `Training rollouts: ${arm} ${trainingText(own)}, ${against} ${trainingText(other)}; ` +
      `all rollouts to come to it: ${all(own)}, ${all(other)}.`;
    const behind = [own, other].flatMap((one) => [one.trainingRollouts.id, one.allRollouts.id]);
    return { text: `${sentence.text} ${rollouts}`, behind: [...sentence.behind, ...behind] };
  });

const selectionSentence = (selection: ReportDraft['selection']): VerdictSentence[] => {
  if (selection === undefined) return [];
  const selected = selection.candidates.filter((c) => c.selected).map((c) => c.name);
  const of = `of ${selection.candidates.length} candidate${selection.candidates.length === 1 ? '' : 's'}`;
  const behind = selection.from.map((ref) => ref.sha256);
  const how = selection.passes === 0 ? ', given by the analyst without labeling' : '';
  const why = selection.reason ?? selection.decision;
  const because = why === undefined ? '' : ` (${why})`;
  return [
    selected.length > 0
      ? say(`Selected ${selected.length} ${of}${how}: ${selected.join(', ')}.`, ...behind)
      : say(`No capability was selected ${of}${because}.`, ...behind),
    ...failedPassesText(selection).map((text) => say(text, ...behind)),
    ...agreementSentence(selection),
    ...faultsSentence(selection),
  ];
};

/** Krippendorff: conclusions from data below it are not even tentative. */
const LEAST_AGREEMENT = 0.667;

const agreementSentence = ({ candidates }: NonNullable<ReportDraft['selection']>): VerdictSentence[] => {
  const low = candidates.flatMap(({ name, selected, agreement }) =>
    selected && agreement && agreement.value !== null && agreement.value < LEAST_AGREEMENT ? [{ name, agreement }] : [],
  );
  if (low.length === 0) return [];
  const said = low.map(({ name, agreement }) => `${name} (${valueText(agreement)}, n ${agreement.n})`).join(', ');
  const text = `The labeling passes agree little on ${said}: Krippendorff's alpha is below ${LEAST_AGREEMENT}.`;
  return [say(text, ...low.map(({ agreement }) => agreement))];
};

const faultsSentence = (selection: NonNullable<ReportDraft['selection']>): VerdictSentence[] => {
  const text = faultsText(selection);
  const { environment, user } = selection.faults?.trajectories ?? {};
  return text === undefined ? [] : [say(`${text}.`, environment, user)];
};

/** Gates were trained on the tasks that they are then compared on: what is said of them there is too good. */
const learnedOn = (option: string): string => (isLearned(option) ? ', which learned on these very tasks' : '');

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
  return [
    say(text, routed, bestSingle.successRate),
    ...regretSentence(router),
    ...(router.noSums === undefined ? [] : [say(`No adapters were added up: ${router.noSums}.`, ...gains)]),
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
  return [say(`${best} (${level(regret)}, n ${regret.n}).`, regret)];
};

const reservations = ({ campaign, leakage, rollouts }: ReportDraft): VerdictSentence[] => {
  const because = campaign.reason === undefined ? '' : `: ${campaign.reason}`;
  const ended: Partial<Record<typeof campaign.status, string>> = {
    running: `The campaign is still running (stage ${campaign.stage}).`,
    stopped_at_stage: `The campaign was stopped after stage ${campaign.stage}; later stages are absent.`,
    failed: `The campaign failed at stage ${campaign.stage}${because}.`,
  };
  const text = ended[campaign.status];
  const broken = brokenText({ rollouts });
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
    ...(broken === undefined ? [] : [say(`${broken}.`, rollouts?.broken)]),
  ];
};

/** The sentences in the order of the page: outcome first, then why, then reservations. */
export const verdict = (report: ReportDraft): VerdictSentence[] => [
  ...armSentences(report.arms ?? []),
  ...comparisonSentences(report),
  ...whereRoutingFails(report),
  ...routerSentence(report),
  ...selectionSentence(report.selection),
  ...(report.capabilities ?? []).flatMap((c) => capabilitySentence(c) ?? []),
  ...reservations(report),
];

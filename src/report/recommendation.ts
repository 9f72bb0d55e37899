/**
 * How the routed policy stands to the baselines, and which policy to ship. Invariants: of two policies as they are a paired test over the tasks
 * decides; that one way of training is ahead of another is said only where the interval holds for other trainings too.
 */
import type { Figure } from '../domain/figure';
import { acrossTrainings, direction, TRAINING_SPREAD } from '../domain/paired-statistics';
import type { Arm, Recommendation, ReportDraft, ReportedComparison, VerdictSentence } from './model';
import { differenceText, pText, spreadText, valueText } from './format';

export const SPREAD = `${100 * TRAINING_SPREAD} points`;
/** The kind of arm that is plain GRPO on the target. */
const PLAIN = 'grpo_target';

export const points = (difference: number): string => {
  const text = Math.abs(100 * difference).toFixed(1);
  return `${text} point${text === '1.0' ? '' : 's'}`;
};

export const samePolicy = (one: Arm | undefined, other: Arm | undefined): boolean =>
  one !== undefined && other !== undefined && (one.sameAs ?? one.name) === (other.sameAs ?? other.name);

export const comparisonsOf = ({ comparisons, arms = [] }: ReportDraft): ReportedComparison[] | undefined =>
  comparisons?.map(({ arm, against, difference }) => {
    const named = (name: string): Arm | undefined => arms.find((one) => one.name === name);
    const common = { arm, against, difference };
    if (samePolicy(named(arm), named(against))) return { ...common, standing: 'same_policy' };
    const { value, interval } = difference;
    if (value === null || !interval) return { ...common, standing: 'undecided' };
    const ends = acrossTrainings({ mean: value, ...interval }, { level: interval.level });
    const method = `${interval.method}, and trainings that differ by ${SPREAD}`;
    const way = direction(ends);
    return {
      ...common,
      acrossTrainings: {
        id: `${difference.id}.across_trainings`,
        ...{ value, n: difference.n, unit: 'difference', from: difference.from },
        interval: { ...interval, ...ends, method },
      },
      standing: way === undefined ? 'undecided' : way === 'up' ? 'ahead' : 'behind',
    };
  });

/** One sentence; the arm that leads is named first. */
export function standingSentence({
  arm,
  against,
  difference,
  acrossTrainings: wide,
  standing,
}: ReportedComparison): VerdictSentence {
  if (standing === 'same_policy')
    return say(`${arm} and ${against} are one policy, and their figures two samples of it.`, difference);
  const { value } = difference;
  if (value === null || !wide) return say(`${arm} and ${against} share no evaluated task.`, difference);
  const turned = value < 0;
  const [first, second] = turned ? [against, arm] : [arm, against];
  const [own, over] = turned ? [reversed(difference), reversed(wide)] : [difference, wide];
  const figures = differenceText(own);
  const again = `over trainings, which differ by about ${SPREAD}, ${spreadText(over)}`;
  const behind = [difference, wide];
  if (standing !== 'undecided')
    return say(`${first} is ${points(value)} ahead of ${second} (${figures}; ${again}).`, ...behind);
  if (direction(difference.interval) === undefined)
    return say(
      `${first} cannot be told from ${second}: ${valueText(own)} (${figures}; one training run of each: ${again}).`,
      ...behind,
    );
  return say(
    `${first} solves ${points(value)} more than ${second} on these tasks (${figures}), but one training run of each does not tell the two ` +
      `apart (${again}).`,
    ...behind,
  );
}

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

/**
 * Which policy to ship: the routed one where it solves more than base beyond chance; a baseline where that solves more beyond chance than what
 * would be shipped without it, p times the number of baselines; else the base model. Undefined where base was not evaluated.
 */
export function recommendationOf(draft: ReportDraft): Recommendation | undefined {
  const { arms = [], router } = draft;
  const evaluated = arms.filter(({ status }) => status === 'evaluated');
  const base = evaluated.find(({ role }) => role === 'base');
  if (!base?.successRate) return undefined;
  const routed = evaluated.find(({ role }) => role === 'routed');
  const compared = comparisonsOf(draft) ?? [];
  const routes = routed !== undefined && !samePolicy(routed, base) && isAbove(routed.differenceToBase, 1);
  const baselines = evaluated.filter((arm) => arm.role === 'baseline' && !samePolicy(arm, base));
  const better = baselines.filter((arm) => {
    if (!routes) return isAbove(arm.differenceToBase, baselines.length);
    const one = compared.find(({ against }) => against === arm.name);
    return one !== undefined && one.standing !== 'same_policy' && isAbove(reversed(one.difference), baselines.length);
  });
  const rate = (arm: Arm): number => arm.successRate?.value ?? 0;
  const [best] = [...better].sort((a, b) => rate(b) - rate(a));
  const shipped = best ?? (routes ? routed : base);
  const plain = compared.find(({ against }) => arms.some(({ name, kind }) => name === against && kind === PLAIN));
  const parts = [
    shipped === base
      ? shipBase(
          base,
          [routed, ...baselines].flatMap((arm) => arm ?? []),
        )
      : shipTrained(shipped, base, router),
    ...(best && routes ? comparedWith(best, compared) : []),
    ...howPlainStands(evaluated, plain, best),
  ];
  return {
    arm: shipped.name,
    text: parts.map(({ text }) => text).join(' '),
    behind: parts.flatMap(({ behind }) => behind),
  };
}

/** `times`: how many were looked at, of which the best would be taken. */
const isAbove = (difference: Figure | undefined, times: number): boolean =>
  difference?.interval !== undefined &&
  direction(difference.interval) === 'up' &&
  times * (difference.test?.p ?? 0) < 1 - difference.interval.level;

function shipTrained(arm: Arm, base: Arm, router: ReportDraft['router']): VerdictSentence {
  const form = router?.crossValidation.forms?.find(({ kept }) => kept)?.form ?? router?.kind;
  const how =
    arm.role !== 'routed'
      ? ''
      : arm.sameAs !== undefined
        ? `, which gives everything to ${arm.sameAs}`
        : `, which routes${form === undefined ? '' : ` by ${form}`}`;
  const { successRate: rate, differenceToBase: difference } = arm;
  const above = difference && `: ${valueText(difference)} (${differenceText(difference)})`;
  return say(
    `Ship ${arm.name}${how}: it solves ${rate && valueText(rate)} of ${rate?.n} test tasks, where ${base.name} solves ` +
      `${base.successRate && valueText(base.successRate)}${above ?? ''}.`,
    ...[rate, base.successRate, difference],
  );
}

function shipBase(base: Arm, others: readonly Arm[]): VerdictSentence {
  const { successRate: rate } = base;
  const each = others.map(({ name, sameAs, differenceToBase: difference }) =>
    sameAs === base.name || !difference
      ? `${name} is ${base.name} itself`
      : `${name} ${valueText(difference)}${difference.test ? `, p ${pText(difference.test.p)}` : ''}`,
  );
  const because =
    each.length === 0 ? 'no other policy was evaluated' : `nothing solves more beyond chance (${each.join('; ')})`;
  return say(
    `Ship ${base.name}, the model as it is, which solves ${rate && valueText(rate)} of ${rate?.n} test tasks: ${because}.`,
    ...[rate, ...others.map(({ differenceToBase }) => differenceToBase)],
  );
}

const comparedWith = (best: Arm, compared: readonly ReportedComparison[]): VerdictSentence[] =>
  compared.filter(({ against }) => against === best.name).map(standingSentence);

function howPlainStands(
  arms: readonly Arm[],
  plain: ReportedComparison | undefined,
  best: Arm | undefined,
): VerdictSentence[] {
  const arm = (name: string | undefined): Arm | undefined => arms.find((one) => one.name === name);
  const [own, other] = [arm(plain?.arm), arm(plain?.against)];
  if (!plain || !own || !other) {
    const known = arms.some(({ kind }) => kind === PLAIN);
    return known ? [] : [say('How plain GRPO on the target would stand is not known: no such arm was evaluated.')];
  }
  const cost = `${valueText(other.allRollouts)} rollouts in all against ${valueText(own.allRollouts)}`;
  const behind = [other.allRollouts, own.allRollouts];
  if (best === other) return [say(`That is plain GRPO on the target, with ${cost}.`, ...behind)];
  const solves = other.successRate && valueText(other.successRate);
  return [
    say(`Plain GRPO on the target (${other.name}) solves ${solves}, with ${cost}.`, other.successRate, ...behind),
    standingSentence(plain),
  ];
}

export const say = (text: string, ...behind: (Figure | string | undefined)[]): VerdictSentence => ({
  text,
  behind: behind.flatMap((b) => (b === undefined ? [] : [typeof b === 'string' ? b : b.id])),
});

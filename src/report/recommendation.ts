/**
 * How the routed policy stands to the baselines, and which policy to ship. Invariants: of two policies as they are a paired test over the tasks
 * decides; that one way of training is ahead of another is said only where the interval holds for other trainings too.
 */
import type { Figure } from '../domain/artifacts';
import { acrossTrainings, direction, TRAINING_SPREAD } from '../domain/statistics';
import { differenceText, MISSING, pText, spreadText, valueText } from './format';
import type { Arm, Recommendation, ReportDraft, ReportedComparison, VerdictSentence } from './model';

export const SPREAD = `${100 * TRAINING_SPREAD} points`;
/** The kind of arm that is plain GRPO on the target. */
const PLAIN = 'grpo_target';

/** `behind`: the figures or artifacts that a sentence rests on. */
export const say = (text: string, ...behind: (Figure | string | undefined)[]): VerdictSentence => ({
  text,
  behind: behind.flatMap((one) => (typeof one === 'string' ? one : (one?.id ?? []))),
});

const points = (difference: number): string => {
  const text = Math.abs(100 * difference).toFixed(1);
  return `${text} point${text === '1.0' ? '' : 's'}`;
};

export const samePolicy = (one: Arm | undefined, other: Arm | undefined): boolean =>
  one !== undefined && other !== undefined && (one.sameAs ?? one.name) === (other.sameAs ?? other.name);

/** By the ends of a difference's interval across trainings. */
export const standingOf = (ends: Parameters<typeof direction>[0]): ReportedComparison['standing'] =>
  (({ up: 'ahead', down: 'behind', none: 'undecided' }) as const)[direction(ends) ?? 'none'];

/** A draft whose comparisons are judged. */
export type Judged = Omit<ReportDraft, 'comparisons'> & { comparisons?: ReportedComparison[] | undefined };

export const judge = (draft: ReportDraft): Judged => ({
  ...draft,
  comparisons: draft.comparisons?.map(({ arm, against, difference }) => {
    const [own, other] = [arm, against].map((name) => draft.arms?.find((one) => one.name === name));
    const common = { arm, against, difference };
    if (samePolicy(own, other)) return { ...common, standing: 'same_policy' };
    const { id, value, interval, n, from } = difference;
    if (value === null || !interval) return { ...common, standing: 'undecided' };
    const ends = acrossTrainings({ mean: value, ...interval }, { level: interval.level });
    const method = `${interval.method}, and trainings that differ by ${SPREAD}`;
    return {
      ...common,
      acrossTrainings: {
        id: `${id}.across_trainings`,
        value,
        n,
        unit: 'difference',
        from,
        interval: { ...interval, ...ends, method },
      },
      standing: standingOf(ends),
    };
  }),
});

/** One sentence; the arm that leads is named first. */
function standingSentence(comparison: ReportedComparison): VerdictSentence {
  const { arm, against, difference, acrossTrainings: wide, standing } = comparison;
  if (standing === 'same_policy')
    return say(`${arm} and ${against} are one policy, and their figures two samples of it.`, difference);
  const { value } = difference;
  if (value === null || !wide) return say(`${arm} and ${against} share no evaluated task.`, difference);
  const [first, second] = value < 0 ? [against, arm] : [arm, against];
  const turned = (figure: Figure) => (value < 0 ? reversed(figure) : figure);
  const figures = differenceText(turned(difference));
  const again = `over trainings, which differ by about ${SPREAD}, ${spreadText(turned(wide))}`;
  const text =
    standing !== 'undecided'
      ? `${first} is ${points(value)} ahead of ${second} (${figures}; ${again}).`
      : direction(difference.interval) === undefined
        ? `${first} cannot be told from ${second}: ${valueText(turned(difference))} (${figures}; one training run of each: ${again}).`
        : `${first} solves ${points(value)} more than ${second} on these tasks (${figures}), but one training run of each does not tell the two apart (${again}).`;
  return say(text, difference, wide);
}

const reversed = ({ value, interval, test, ...figure }: Figure): Figure => ({
  ...figure,
  value: value === null ? null : -value,
  interval: interval && { ...interval, low: -interval.high, high: -interval.low },
  test: test && { ...test, better: test.worse, worse: test.better },
});

/**
 * Which policy to ship: the routed one where it solves more than base beyond chance; a baseline where that solves more beyond chance than what
 * would be shipped without it, p times the number of baselines; else the base model. Undefined where base was not evaluated.
 */
export function recommendationOf({ arms = [], router, comparisons = [] }: Judged): Recommendation | undefined {
  const evaluated = arms.filter(({ status }) => status === 'evaluated');
  const base = evaluated.find(({ role }) => role === 'base');
  if (!base?.successRate) return undefined;
  const routed = evaluated.find(({ role }) => role === 'routed');
  const routes = routed !== undefined && !samePolicy(routed, base) && isAbove(routed.differenceToBase, 1);
  const baselines = evaluated.filter((arm) => arm.role === 'baseline' && !samePolicy(arm, base));
  const better = baselines.filter((arm) => {
    if (!routes) return isAbove(arm.differenceToBase, baselines.length);
    const one = comparisons.find(({ against }) => against === arm.name);
    return one !== undefined && one.standing !== 'same_policy' && isAbove(reversed(one.difference), baselines.length);
  });
  const rate = (arm: Arm): number => arm.successRate?.value ?? 0;
  const [best] = better.sort((a, b) => rate(b) - rate(a));
  const shipped = best ?? (routes ? routed : base);

  const plain = evaluated.find(({ kind }) => kind === PLAIN);
  const compared = (arm: Arm | undefined) => comparisons.find(({ against }) => against === arm?.name);
  const toBest = routes ? compared(best) : undefined;
  const toPlain = plain === best ? undefined : compared(plain);
  const tried = [...(routed ? [routed] : []), ...baselines];
  const sentences = [
    shipped === base ? shipBase(base, tried) : shipTrained(shipped, base, router),
    toBest && standingSentence(toBest),
    plain && !compared(plain) ? undefined : plainSentence(plain, routed, best),
    toPlain && standingSentence(toPlain),
  ].filter((one) => one !== undefined);
  const text = sentences.map((one) => one.text).join(' ');
  return { arm: shipped.name, text, behind: sentences.flatMap(({ behind }) => behind) };
}

/** `times`: how many were looked at, of which the best would be taken. */
const isAbove = (difference: Figure | undefined, times: number): boolean =>
  difference?.interval !== undefined &&
  direction(difference.interval) === 'up' &&
  times * (difference.test?.p ?? 0) < 1 - difference.interval.level;

function shipTrained(arm: Arm, base: Arm, router: Judged['router']): VerdictSentence {
  const { name, role, sameAs, successRate: rate, differenceToBase: difference } = arm;
  const form = router?.crossValidation.forms?.find(({ kept }) => kept)?.form ?? router?.kind;
  const by = form === undefined ? ', which routes' : `, which routes by ${form}`;
  const how = role !== 'routed' ? '' : sameAs === undefined ? by : `, which gives everything to ${sameAs}`;
  const above = difference ? `: ${valueText(difference)} (${differenceText(difference)})` : '';
  return say(
    `Ship ${name}${how}: it solves ${rateText(arm)} of ${rate?.n} test tasks, where ${base.name} solves ${rateText(base)}${above}.`,
    rate,
    base.successRate,
    difference,
  );
}

const rateText = ({ successRate }: Arm): string => (successRate ? valueText(successRate) : MISSING);

function shipBase(base: Arm, others: readonly Arm[]): VerdictSentence {
  const each = others.map(({ name, sameAs, differenceToBase: difference }) => {
    if (sameAs === base.name || !difference) return `${name} is ${base.name} itself`;
    return `${name} ${valueText(difference)}${difference.test ? `, p ${pText(difference.test.p)}` : ''}`;
  });
  const because =
    each.length === 0 ? 'no other policy was evaluated' : `nothing solves more beyond chance (${each.join('; ')})`;
  return say(
    `Ship ${base.name}, the model as it is, which solves ${rateText(base)} of ${base.successRate?.n} test tasks: ${because}.`,
    base.successRate,
    ...others.map(({ differenceToBase }) => differenceToBase),
  );
}

function plainSentence(plain: Arm | undefined, routed: Arm | undefined, best: Arm | undefined): VerdictSentence {
  if (!plain || !routed)
    return say('How plain GRPO on the target would stand is not known: no such arm was evaluated.');
  const cost = `${valueText(plain.allRollouts)} rollouts in all against ${valueText(routed.allRollouts)}`;
  const behind = [plain.allRollouts, routed.allRollouts];
  return plain === best
    ? say(`That is plain GRPO on the target, with ${cost}.`, ...behind)
    : say(
        `Plain GRPO on the target (${plain.name}) solves ${rateText(plain)}, with ${cost}.`,
        plain.successRate,
        ...behind,
      );
}

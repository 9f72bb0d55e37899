/**
 * Which policy to ship, and how the routed policy compares to plain GRPO. Invariants: the tests that choose are corrected for all candidates; nothing
 * is said about other trainings of a policy, which one campaign can't know.
 */
import type { Figure } from '../domain/artifacts';
import { direction, holm } from '../domain/statistics';
import { differenceText, MISSING, pText, valueText } from './format';
import type { Arm, Recommendation, Report, ReportedComparison, VerdictSentence } from './model';

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

/** The arm with the higher rate is named first. */
function differenceSentence({ arm, against, difference }: ReportedComparison, isOne: boolean): VerdictSentence {
  if (isOne) return say(`${arm} and ${against} are one policy, and their figures two samples of it.`, difference);
  const { value } = difference;
  if (value === null) return say(`${arm} and ${against} share no evaluated task.`, difference);
  const [first, second] = value < 0 ? [against, arm] : [arm, against];
  const turned = value < 0 ? reversed(difference) : difference;
  const figures = differenceText(turned);
  return say(
    direction(difference.interval) === undefined
      ? `No significant difference between ${first} and ${second} on these tasks: ${valueText(turned)} (${figures}).`
      : `${first} solves ${points(value)} more than ${second} on these tasks (${figures}).`,
    difference,
  );
}

const reversed = ({ value, interval, test, ...figure }: Figure): Figure => ({
  ...figure,
  value: value === null ? null : -value,
  interval: interval && { ...interval, low: -interval.high, high: -interval.low },
  test: test && { ...test, better: test.worse, worse: test.better },
});

type Decided = Pick<Report, 'arms' | 'router' | 'comparisons'>;

/**
 * Ships the routed policy where it is significantly better than base; a baseline where it is significantly better than the routed policy, or, if that
 * is not shipped, than base; else base. Undefined where base was not evaluated.
 */
export function recommendationOf({ arms = [], router, comparisons = [] }: Decided): Recommendation | undefined {
  const evaluated = arms.filter(({ status }) => status === 'completed');
  const base = evaluated.find(({ role }) => role === 'base');
  if (!base?.successRate) return undefined;
  const routed = evaluated.find(({ role }) => role === 'routed');
  const baselines = evaluated.filter((arm) => arm.role === 'baseline' && !samePolicy(arm, routed));
  const others = [...(routed ? [routed] : []), ...baselines];
  const candidates = others.filter((arm) => !samePolicy(arm, base));
  const compared = (arm: Arm | undefined) => comparisons.find(({ against }) => against === arm?.name);
  const toBase = testsOf(
    base,
    candidates.map((arm) => ({ arm, difference: arm.differenceToBase })),
  );
  const routes = toBase.some(({ arm, isBetter }) => arm === routed && isBetter);
  const rivals = candidates.flatMap((arm) => {
    const difference = arm === routed ? undefined : compared(arm)?.difference;
    return difference ? [{ arm, difference: reversed(difference) }] : [];
  });
  const toRouted = routes && routed ? testsOf(routed, rivals) : [];
  const rate = (arm: Arm): number => arm.successRate?.value ?? 0;
  const [best] = (routes ? toRouted : toBase)
    .flatMap(({ arm, isBetter }) => (isBetter ? [arm] : []))
    .sort((a, b) => rate(b) - rate(a));
  const shipped = best ?? (routes && routed ? routed : base);

  const plain = evaluated.find(({ kind }) => kind === PLAIN);
  const sentence = (arm: Arm | undefined) => {
    const comparison = compared(arm);
    return comparison && differenceSentence(comparison, samePolicy(arm, routed));
  };
  const sentences = [
    shipped === base ? shipBase(base, others, toBase) : shipTrained(shipped, base, router, toBase),
    routes ? sentence(best) : undefined,
    plain && !compared(plain) ? undefined : plainSentence(plain, routed, best),
    plain === best ? undefined : sentence(plain),
  ].filter((one) => one !== undefined);
  return {
    arm: shipped.name,
    text: sentences.map((one) => one.text).join(' '),
    behind: sentences.flatMap(({ behind }) => behind),
    tests: [...toBase, ...toRouted].map(({ arm, against, ...test }) => ({
      arm: arm.name,
      against: against.name,
      ...test,
    })),
  };
}

type Decision = Pick<Recommendation['tests'][number], 'p' | 'corrected' | 'isBetter'> & { arm: Arm; against: Arm };

/** Tests each arm against one policy, as one family. */
function testsOf(against: Arm, family: readonly { arm: Arm; difference: Figure | undefined }[]): Decision[] {
  const ps = family.map(({ difference }) => difference?.test?.p ?? 1);
  const corrected = holm(ps);
  return family.map(({ arm, difference }, n) => {
    const level = difference?.interval?.level ?? 1;
    const isBetter = direction(difference?.interval) === 'up' && corrected[n]! < 1 - level;
    return { arm, against, p: ps[n]!, corrected: corrected[n]!, isBetter };
  });
}

/** `, Holm-corrected p 0.012`; of one test its p as it is. */
function correctedText(arm: Arm, tests: readonly Decision[]): string {
  const own = tests.find((test) => test.arm === arm);
  if (!own) return '';
  return tests.length > 1 ? `, Holm-corrected p ${pText(own.corrected)}` : `, p ${pText(own.p)}`;
}

function shipTrained(arm: Arm, base: Arm, router: Report['router'], tests: readonly Decision[]): VerdictSentence {
  const { name, role, sameAs, successRate: rate, differenceToBase: difference } = arm;
  const form = router?.crossValidation.forms?.find(({ kept }) => kept)?.form ?? router?.kind;
  const by = form === undefined ? ', which routes' : `, which routes by ${form}`;
  const how = role !== 'routed' ? '' : sameAs === undefined ? by : `, which gives everything to ${sameAs}`;
  const above = difference
    ? `: ${valueText(difference)} (${differenceText(difference)}${tests.length > 1 ? correctedText(arm, tests) : ''})`
    : '';
  return say(
    `Ship ${name}${how}: it solves ${rateText(arm)} of ${rate?.n} test tasks, where ${base.name} solves ${rateText(base)}${above}.`,
    rate,
    base.successRate,
    difference,
  );
}

const rateText = ({ successRate }: Arm): string => (successRate ? valueText(successRate) : MISSING);

function shipBase(base: Arm, others: readonly Arm[], tests: readonly Decision[]): VerdictSentence {
  const each = others.map((arm) => {
    const { name, differenceToBase: difference } = arm;
    if (samePolicy(arm, base)) return `${name} is ${base.name} itself`;
    return `${name} ${difference ? valueText(difference) + correctedText(arm, tests) : MISSING}`;
  });
  const because =
    each.length === 0
      ? 'no other policy was evaluated'
      : `no other policy is significantly better (${each.join('; ')})`;
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

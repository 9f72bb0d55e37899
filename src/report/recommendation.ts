/**
 * Chooses the policy to ship, and states whether GRPO on the target is cheaper. Invariants: the tests are corrected for all candidates; no statement covers
 * other trainings of a policy, which one campaign does not observe.
 */
import type { Figure } from '../domain/artifacts';
import { direction, holm } from '../domain/statistics';
import { intervalText, MISSING, pText, shortPercent, valueText } from './format';
import type { Arm, Recommendation, Report, VerdictSentence } from './model';

/** The kind of arm that is plain GRPO on the target. */
const PLAIN = 'grpo_target';
/** A baseline with at least this share of the rollouts is not called cheaper. */
const LESS = 0.95;

/** `behind`: the figures or artifacts that a sentence rests on. */
export const say = (text: string, ...behind: (Figure | string | undefined)[]): VerdictSentence => ({
  text,
  behind: behind.flatMap((one) => (typeof one === 'string' ? one : (one?.id ?? []))),
});

export const samePolicy = (one: Arm | undefined, other: Arm | undefined): boolean =>
  one !== undefined && other !== undefined && (one.sameAs ?? one.name) === (other.sameAs ?? other.name);

const reversed = ({ value, interval, test, ...figure }: Figure): Figure => ({
  ...figure,
  value: value === null ? null : -value,
  interval: interval && { ...interval, low: -interval.high, high: -interval.low },
  test: test && { ...test, better: test.worse, worse: test.better },
});

/** Returns the first sentences of a report: which policy to ship, or why none is known. */
export const verdictOf = ({ recommendation, doubts }: Pick<Report, 'recommendation' | 'doubts'>): string =>
  recommendation?.sentences.map(({ text }) => text).join(' ') ?? doubts[0]?.text ?? '';

type Decided = Pick<Report, 'arms' | 'comparisons'>;

/**
 * Ships the routed policy where it is significantly better than base; a baseline where it is significantly better than the routed policy, or, if that
 * is not shipped, than base; else base. Undefined where base was not evaluated.
 */
export function recommendationOf({ arms = [], comparisons = [] }: Decided): Recommendation | undefined {
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
  const sentences = [
    shipped === base ? shipBase(base, others, toBase) : shipTrained(shipped, base),
    best && best !== routed && best !== plain && routes ? betterSentence(best, compared(best)?.difference) : undefined,
    shipped === base ? undefined : priceSentence(plain, routed, compared(plain)?.difference),
  ].filter((one) => one !== undefined);
  return {
    arm: shipped.name,
    sentences,
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

function shipTrained(arm: Arm, base: Arm): VerdictSentence {
  const { name, successRate: rate, differenceToBase: difference } = arm;
  const above = difference ? ` (${pairText(difference)})` : '';
  return say(
    `Ship ${name}: success rate ${rateText(arm)} on ${rate?.n} test tasks, ${base.name} ${rateText(base)}${above}.`,
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
    `Ship ${base.name}, the model as it is: success rate ${rateText(base)} on ${base.successRate?.n} test tasks; ${because}.`,
    base.successRate,
    ...others.map(({ differenceToBase }) => differenceToBase),
  );
}

const betterSentence = ({ name }: Arm, toRouted: Figure | undefined): VerdictSentence | undefined => {
  const difference = toRouted && reversed(toRouted);
  return difference && say(`${name} is better than the routed policy (${pairText(difference)}).`, toRouted);
};

/** `+2.0 pt, 95% interval -1.1 to +5.1`. */
const pairText = (difference: Figure): string => `${valueText(difference)}, ${intervalText(difference)}`;

const TRAIN = 'train on the target';

/** Says whether GRPO on the target reaches as much with fewer rollouts. `difference`: the routed policy minus the baseline. */
function priceSentence(
  plain: Arm | undefined,
  routed: Arm | undefined,
  difference: Figure | undefined,
): VerdictSentence | undefined {
  if (!plain || !routed)
    return say('Whether GRPO on the target is the cheaper way is unknown: no such baseline was evaluated.');
  if (!difference) return undefined;
  const [own, all] = [plain.allRollouts, routed.allRollouts];
  const behind = [plain.successRate, difference, own, all];
  if (samePolicy(plain, routed)) return say(`${plain.name} and ${routed.name} are one policy.`, ...behind);
  const share = own.value !== null && all.value ? own.value / all.value : 1;
  const isCheaper = share < LESS;
  const [standing, advice] = {
    up: ['significantly lower than', isCheaper ? 'in this run the additional rollouts paid off' : 'it is no cheaper'],
    down: ['significantly higher than', TRAIN],
    none: [
      'no significant difference from',
      isCheaper ? `if episodes on the target are cheap, ${TRAIN}` : 'training on the target saves no rollouts',
    ],
  }[direction(difference.interval) ?? 'none'];
  return say(
    `GRPO on the target (${plain.name}): success rate ${rateText(plain)}, ${standing} ${routed.name} (${pairText(reversed(difference))}), with ${shortPercent(Math.round(100 * share) / 100)} of the rollouts (${valueText(own)} of ${valueText(all)}): ${advice}.`,
    ...behind,
  );
}

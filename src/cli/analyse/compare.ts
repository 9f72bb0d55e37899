/**
 * People's labels against the passes: the label of most passes, capability by capability. Invariant: only what both labeled is compared; a
 * coefficient that is not defined is left out, never 0.
 */
import { cohensKappa, krippendorffAlpha } from '../../domain/selection';
import { commonest, type Label, type LabelPass } from '../../domain/capability';
import { compareBegins, type ComparedBegins } from './compare-begins';
import { isMark, type HumanLabel } from './human-labels';
import { labelNames, majority, readingsOf } from './tally';

export interface Compared {
  /** `all` of them, or one. */
  capability: string;
  compared: number;
  /** Share of equal labels. */
  observed?: number;
  kappa?: number;
  alpha?: number;
  /** By the person's label, then the passes'. */
  confusion: Record<Label, Record<Label, number>>;
  /** Of what both call LACKING, with a message by both. */
  steps: { compared: number; same: number; nextTo: number };
}

export interface Comparison {
  labels: number;
  passes: number;
  rows: Compared[];
  /** Where failures begin, if people marked it. */
  begins?: ComparedBegins;
}

interface Pair {
  capability: string;
  human: Label;
  passes: Label;
  /** How far apart both put the step. */
  apart?: number;
}

export function compare({
  labels,
  passes,
}: {
  labels: readonly HumanLabel[];
  passes: readonly LabelPass[];
}): Comparison {
  const readings = readingsOf(passes);
  const pairs = labels.flatMap((given): Pair[] => {
    if (isMark(given)) return [];
    const { conversation, capability, label, message } = given;
    const votes = readings.get(capability)?.get(conversation);
    const most = votes && majority(votes);
    if (!most) return [];
    const step = stepOf({ passes, capability, conversation });
    const apart = label === 'LACKING' && most === label && message !== undefined && step !== undefined;
    return [{ capability, human: label, passes: most, ...(apart && { apart: Math.abs(message - step) }) }];
  });
  const begins = compareBegins({ labels, passes });
  const names = [...new Set(pairs.map(({ capability }) => capability))].sort();
  return {
    labels: labels.length,
    passes: passes.length,
    rows: [
      ...names.map((name) =>
        comparedOf(
          name,
          pairs.filter(({ capability }) => capability === name),
        ),
      ),
      ...(names.length > 1 ? [comparedOf('all', pairs)] : []),
    ],
    ...(begins && { begins }),
  };
}

/** The message that most passes name that call it LACKING. */
const stepOf = (o: { passes: readonly LabelPass[]; capability: string; conversation: string }): number | undefined => {
  const { passes, capability, conversation } = o;
  const named = passes.flatMap((pass) => {
    const lists = pass.labels[capability];
    const lacks = lists?.lacking_failed.includes(conversation) || lists?.lacking_passed.includes(conversation);
    const message = pass.reasons?.[capability]?.[conversation]?.message;
    return lacks && message !== undefined ? [message] : [];
  });
  return commonest(named)?.message;
};

function comparedOf(capability: string, pairs: readonly Pair[]): Compared {
  const two = pairs.map(({ human, passes }) => [human, passes] as const);
  const { kappa, observed } = cohensKappa(two);
  const { alpha } = krippendorffAlpha(two);
  const apart = pairs.flatMap((pair) => pair.apart ?? []);
  const row = (human: Label) =>
    Object.fromEntries(
      labelNames.map((label) => [label, two.filter(([a, b]) => a === human && b === label).length]),
    ) as Record<Label, number>;
  return {
    capability,
    compared: pairs.length,
    ...(observed !== undefined && { observed }),
    ...(kappa !== undefined && { kappa }),
    ...(alpha !== undefined && { alpha }),
    confusion: Object.fromEntries(labelNames.map((human) => [human, row(human)])) as Compared['confusion'],
    steps: {
      compared: apart.length,
      same: apart.filter((distance) => distance === 0).length,
      nextTo: apart.filter((distance) => distance <= 1).length,
    },
  };
}

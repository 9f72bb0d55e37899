/** Paired differences in words: how many tasks each side solves more often, and whether that may be chance. */
import type { Figure } from '../domain/figure';
import type { Report } from '../domain/report';
import { MISSING, spreadText, valueText } from './format';

export const TEST =
  'sign-flip test over the tasks, two-sided, as is the interval of a difference; with one trial a task it is McNemar’s exact test';

/** `0.039`, `<0.001`. */
export const pText = (p: number): string => (p < 0.001 ? '<0.001' : p.toFixed(3));

/** `better on 10 tasks, worse on 2, p 0.039`; undefined of what was not tested. */
export const testText = ({ test }: Pick<Figure, 'test'>): string | undefined => {
  if (test === undefined) return undefined;
  const { better, worse, p } = test;
  return `better on ${better} ${better === 1 ? 'task' : 'tasks'}, worse on ${worse}, p ${pText(p)}`;
};

/**
 * Of the routed policy, against base and each baseline: `trace to grpo_target: +4.5 pt (+1.0 to +8.5), better on 13 tasks, worse on 4, p 0.049;
 * over trainings -6.3 to +15.3, undecided`.
 */
export const comparisonNotes = ({ arms = [], comparisons = [] }: Report): string[] => {
  const base = arms.find(({ role }) => role === 'base')?.name ?? 'base';
  const toBase = arms.flatMap(({ name, role, differenceToBase }) =>
    role === 'routed' && differenceToBase ? [{ arm: name, against: base, difference: differenceToBase }] : [],
  );
  const noteOf = ({ arm, against, difference }: (typeof toBase)[number]): string => {
    const value = `${valueText(difference)} (${spreadText(difference) ?? MISSING})`;
    return [`${arm} to ${against}: ${value}`, ...[testText(difference) ?? []].flat()].join(', ');
  };
  const notes = [
    ...toBase.map(noteOf),
    ...comparisons.map(({ acrossTrainings, standing, ...of }) => {
      if (standing === 'same_policy') return `${of.arm} and ${of.against} are one policy`;
      return acrossTrainings ? `${noteOf(of)}; over trainings ${spreadText(acrossTrainings)}, ${standing}` : noteOf(of);
    }),
  ];
  const tested = [...toBase, ...comparisons].some(({ difference }) => difference.test);
  return tested ? [...notes, `p: ${TEST}`] : notes;
};

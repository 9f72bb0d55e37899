/** Numbers and names as text, in one way for the page, the terminal and the verdict. */
import type { Figure } from '../domain/artifacts';
import { groupBy } from '../domain/statistics';
import type { ReportedSelection } from './capability-model';
import type { Arm } from './model';

export const MISSING = '–';

/** Labels of message roles. */
export const messageRoles = { system: 'system', user: 'user', assistant: 'agent', tool: 'result' } as const;

const fixed = (value: number, digits: number): string => {
  const text = value.toFixed(digits);
  // A tiny negative number would read "-0.0".
  return Number(text) === 0 ? (0).toFixed(digits) : text;
};
const signed = (value: number): string => (value > 0 && fixed(value, 1) !== '0.0' ? '+' : '') + fixed(value, 1);
export const wholeNumber = (value: number): string => fixed(value, 0).replace(/\B(?=(\d{3})+$)/g, ',');

export const percent = (fraction: number): string => `${fixed(100 * fraction, 1)}%`;
/** A level or a tick: `95%`, `97.5%`. */
export const shortPercent = (fraction: number): string => percent(fraction).replace('.0%', '%');

/** Number format and sign of each unit. */
const units: { [unit in NonNullable<Figure['unit']>]?: readonly [number: (value: number) => string, sign: string] } = {
  fraction: [(value) => fixed(100 * value, 1), '%'],
  difference: [(value) => signed(100 * value), ' pt'],
  count: [wholeNumber, ''],
  tokens: [wholeNumber, ''],
};
const unitOf = (unit: Figure['unit']) => (unit && units[unit]) ?? [(value: number) => fixed(value, 2), ''];

/** The value in its unit: `61.0%`, `+31.0 pt`, `0.42`, `12,400`. */
export function valueText({ value, unit }: Pick<Figure, 'value' | 'unit'>): string {
  const [number, sign] = unitOf(unit);
  return value === null ? MISSING : number(value) + sign;
}

/** The interval's ends in the figure's unit without its sign, `54.1 to 67.5`; or `sd 0.03` where that is what there is. */
export function spreadText({ interval, std, unit }: Pick<Figure, 'interval' | 'std' | 'unit'>): string | undefined {
  const [number] = unitOf(unit);
  if (interval) return `${number(interval.low)} to ${number(interval.high)}`;
  return std === undefined ? undefined : `sd ${fixed(std, 2)}`;
}

/** `61.0% (54.1 to 67.5)`. */
export function measuredText(measured: Pick<Figure, 'value' | 'unit' | 'interval' | 'std'>): string {
  const spread = spreadText(measured);
  return valueText(measured) + (spread === undefined ? '' : ` (${spread})`);
}

export const TEST =
  'sign-flip test over the tasks, two-sided, as is the interval of a difference, which is widened where fewer than ten tasks differ; with one trial a task it is McNemar’s exact test';

/** `0.039`, `<0.001`. */
export const pText = (p: number): string => (p < 0.001 ? '<0.001' : p.toFixed(3));

/** `better on 10 tasks, worse on 2, p 0.039`; undefined of what was not tested. */
export const testText = ({ test }: Pick<Figure, 'test'>): string | undefined =>
  test &&
  `better on ${test.better} ${test.better === 1 ? 'task' : 'tasks'}, worse on ${test.worse}, p ${pText(test.p)}`;

/** `95% interval +1.0 to +8.5`. */
export const intervalText = (figure: Figure): string =>
  figure.interval === undefined
    ? 'no interval'
    : `${shortPercent(figure.interval.level)} interval ${spreadText(figure)}`;

/** Cents; of less than one, the first digits that are not zero. */
export const dollarsText = (dollars: number | undefined): string => {
  if (dollars === undefined) return MISSING;
  return `$${dollars > 0 && dollars < 0.01 ? dollars.toPrecision(2) : dollars.toFixed(2)}`;
};

export const shortSha = (sha256: string): string => sha256.slice(0, 8);
/** Shortens hashes. Other names, such as ids of conversations in a user's files, are returned unchanged. */
export const shortId = (id: string): string => (/^[0-9a-f]{64}$/.test(id) ? shortSha(id) : id);

/** `2026-01-05 10:09:12 UTC`, of milliseconds since the epoch. */
export const timeText = (at: number): string => `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`;

/** Seconds as `45 s`, `3 min 20 s`, `2 h 5 min`. */
export const duration = (seconds: number): string => {
  const s = Math.round(seconds);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
};

/** Control characters other than tab and line break, what turns the direction of writing or has no width, halves of surrogate pairs. */
const UNSEEN = /[^\P{Cc}\t\n]|[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]|\p{Cs}/gu;

export const visible = (text: string): string =>
  text.replaceAll('\r\n', '\n').replace(UNSEEN, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);

/** At most so many characters of a text, and never half of one. */
export const beginningOf = (text: string, longest: number): string =>
  text.slice(0, longest).replace(/[\uD800-\uDBFF]$/, '');

/** A long name, cut in its middle. The beginning says more: it keeps two thirds of the room. */
export function shortName(name: string, longest: number): string {
  if (name.length <= longest) return name;
  const begin = Math.ceil(((longest - 1) * 2) / 3);
  return `${name.slice(0, begin)}…${name.slice(name.length - (longest - 1 - begin))}`;
}

/** Returns the fields of a configuration by their path. */
export function fieldsOf(value: unknown, path = ''): Map<string, string> {
  if (value === undefined) return new Map();
  if (typeof value !== 'object' || value === null) return new Map([[path, String(value)]]);
  const entries = Object.entries(value);
  if (entries.length === 0) return new Map([[path, JSON.stringify(value)]]);
  return new Map(entries.flatMap(([name, inner]) => [...fieldsOf(inner, path === '' ? name : `${path}.${name}`)]));
}

/** Texts for the standing of one policy against another over several trainings. */
export const standingTexts = {
  ahead: 'better over trainings',
  behind: 'worse over trainings',
  undecided: 'no significant difference over trainings',
  one_training: 'one training of each',
  same_policy: 'one policy, and its figures are samples of it',
} as const;

/** `demo +3.5 pt; demo-s2 -0.5 pt`. */
export const byRunText = ({ byRun }: { byRun: readonly { run: string; difference: number }[] }): string =>
  byRun.map(({ run, difference: value }) => `${run} ${valueText({ value, unit: 'difference' })}`).join('; ');

/** Undefined where none failed. */
export function failedPassesText({ passes, failedPasses }: ReportedSelection): string | undefined {
  if (failedPasses.length === 0) return undefined;
  const reasons = [...new Set(failedPasses.map(({ reason }) => reason))].join('; ');
  return `Labeling passes that failed and are left out: ${failedPasses.length} of ${passes}: ${reasons}.`;
}

type Named = Pick<Arm, 'name' | 'role' | 'sameAs'>;

/** Groups arms that are one policy: `arm` is the base model, else the routed policy, else the first of them. */
export function policiesOf<One extends Named>(arms: readonly One[]): { arm: One; same: One[] }[] {
  return [...groupBy(arms, (one) => one.sameAs ?? one.name).values()].map((group) => {
    const arm = ['base', 'routed'].flatMap((role) => group.filter((one) => one.role === role))[0] ?? group[0]!;
    return { arm, same: group.filter((one) => one !== arm) };
  });
}

/** What a campaign needs, looked at before any work starts: items as data, one loop over them, and what they come to in words. */
import type { Stage } from '../domain/campaign';
import { reasonOf } from '../domain/failures';

export interface Check {
  name: string;
  ok: boolean;
  /** Nothing is missing, but the campaign comes to less than it might. */
  warning?: true;
  /** What was found, on one line. */
  detail: string;
  /** How to get what is missing. */
  fix?: string;
}

/** One thing to look at. */
export interface CheckItem {
  name: string;
  /** What mends whatever `run` throws, unless a `Lack` says it. */
  fix?: string | undefined;
  /** Items without which there is nothing to look at: where one of them fails, this one is left out. */
  needs?: readonly string[];
  /** Of what works on the base rollouts: nothing is lacking in a run that stops after these. */
  afterRollouts?: true;
  /** What there is, in words; undefined where nothing is to be said. Throws what is lacking. */
  run(): Finding | Promise<Finding>;
}
type Finding = string | { warning: string } | undefined;

/** Something that is missing, with its own way to get it. */
export class Lack extends Error {
  constructor(
    message: string,
    readonly fix?: string,
  ) {
    super(message);
  }
}

interface CheckRun {
  /** The stage that the campaign stops after. */
  until?: Stage | undefined;
  /** Whether what was thrown says that something is lacking; anything else is thrown on. */
  isLack?: (error: unknown) => boolean;
}

/** Looks at all items at once, each after those that it needs. */
export async function runChecks(items: readonly CheckItem[], o: CheckRun = {}): Promise<Check[]> {
  const outcomes = new Map<string, Promise<Outcome>>();
  const outcomeOf = async (item: CheckItem): Promise<Outcome> => {
    const needed = await Promise.all((item.needs ?? []).map((name) => outcomes.get(name)));
    const isMissing = needed.some((one) => one === 'left out' || (typeof one === 'object' && !one.ok));
    return isMissing ? 'left out' : look(item, o);
  };
  for (const item of items) outcomes.set(item.name, outcomeOf(item));
  const checks = await Promise.all(outcomes.values());
  return checks.filter((check) => typeof check === 'object');
}

type Outcome = Check | 'nothing to say' | 'left out';

async function look(item: CheckItem, { until, isLack = () => true }: CheckRun): Promise<Outcome> {
  const { name } = item;
  try {
    const found = await item.run();
    if (found === undefined) return 'nothing to say';
    return typeof found === 'string'
      ? { name, ok: true, detail: found }
      : { name, ok: true, warning: true, detail: found.warning };
  } catch (error) {
    if (!(error instanceof Lack) && !isLack(error)) throw error;
    const detail = reasonOf(error)
      .replace(/\s*\n\s*/g, ' ')
      .trim();
    const fix = error instanceof Lack && error.fix !== undefined ? error.fix : item.fix;
    const check = { name, ok: false, detail, ...(fix !== undefined && { fix }) };
    if (!item.afterRollouts || until !== 'rollouts') return check;
    return { name, ok: true, warning: true, detail: `needed after the rollouts: ${textOf(check)}` };
  }
}

/** What is wrong and how it is mended. */
export const textOf = ({ detail, fix }: Check): string => [detail, fix].filter(Boolean).join('; ');

export const warningsOf = (checks: readonly Check[]): string[] =>
  checks.filter(({ warning }) => warning).map(({ name, detail }) => `${name}: ${detail}`);

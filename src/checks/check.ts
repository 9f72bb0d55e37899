/**
 * What a campaign needs, looked at before any work starts: items as data, one loop over them, and what they come to in words. What has to hold of its
 * parts: each is known, can be opened and can work on the target, and arms find what they read and whom they ask. `campaign doctor`, `run`, `plan` and
 * the step `prepare` go through that list.
 */
import { type Stage, armName, type Campaign, type SelectionRule } from '../domain/campaign';
import { reasonOf } from '../domain/failures';
import type { EnvironmentDescription } from '../domain/environment';
import { kindOf } from '../domain/kinds';
import type { Registry } from '../registry';
import { moduleFiles } from '../sandbox/source';

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

interface CheckedParts {
  campaign: Campaign;
  /** Of the target; without it analyst and synthesizer are opened only. */
  describe: () => Promise<EnvironmentDescription | undefined>;
  registry: Registry;
}

interface Part {
  unsuited?(description: EnvironmentDescription, rule: SelectionRule): string | undefined;
}

export function partChecks({ campaign, describe, registry }: CheckedParts): CheckItem[] {
  const { analyst, synthesizer, selection, router, arms } = campaign;
  const opened = (
    name: 'analyst' | 'synthesizer',
    o: { kind: string; open: () => Part | Promise<Part>; lacks: (reason: string) => { warning: string } },
  ): CheckItem => ({
    name,
    afterRollouts: true,
    fix: `correct the field ${name} of the campaign file`,
    async run() {
      const part = await o.open();
      const description = await describe();
      if (!description) return `${o.kind}, not held against the target`;
      const reason = part.unsuited?.(description, selection);
      return reason === undefined ? o.kind : o.lacks(reason);
    },
  });
  return [
    opened('analyst', {
      kind: analyst.kind,
      open: () => kindOf(registry.analysts, analyst).open(analyst, undefined),
      lacks(reason) {
        throw new Lack(reason, 'change the field analyst of the campaign file');
      },
    }),
    opened('synthesizer', {
      kind: synthesizer.kind,
      open: () => kindOf(registry.synthesizers, synthesizer).open(synthesizer, undefined),
      // The arms still train.
      lacks: (reason) => ({
        warning: `capabilities will end not_trained and get no adapter; ${synthesizer.kind}: ${reason}`,
      }),
    }),
    { name: 'router', afterRollouts: true, run: () => void kindOf(registry.routers, router) },
    ...arms.flatMap((spec) => armChecks(spec, campaign, registry)),
  ];
}

function armChecks(spec: Campaign['arms'][number], campaign: Campaign, registry: Registry): CheckItem[] {
  const asks: CheckItem = {
    name: `arm ${armName(spec)}`,
    afterRollouts: true,
    fix: 'correct it in the campaign file',
    run: () => void kindOf(registry.arms, spec).languageModel?.(spec, campaign),
  };
  const folder = registry.arms.find(({ kind }) => kind === spec.kind)?.reads?.(spec);
  if (!folder) return [asks];
  const { field, path } = folder;
  const reads: CheckItem = {
    name: field,
    afterRollouts: true,
    fix: `correct ${field} in the campaign file, or what it names`,
    run: async () => `${(await moduleFiles(path)).length} modules in ${path}`,
  };
  return [asks, reads];
}

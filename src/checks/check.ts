/**
 * Requirements as data, one loop over them, and the requirements of a campaign's parts: each is known, can be opened and suits the target. `campaign
 * check`, `campaign run` and the step `prepare` use this list.
 */
import { type Stage, armName, type Campaign, type SelectionRule } from '../domain/campaign';
import { reasonOf } from '../domain/failures';
import type { EnvironmentDescription } from '../domain/environment';
import { kindOf, TARGET_TASKS } from '../domain/kinds';
import type { Registry } from '../registry';
import { moduleFiles } from '../sandbox/source';

export interface Check {
  name: string;
  ok: boolean;
  /** Nothing is missing, but results may be worse. */
  warning?: true;
  /** Finding on one line. */
  detail: string;
  /** Command or action that meets the requirement. */
  fix?: string;
}

/** A requirement. */
export interface CheckItem {
  name: string;
  /** The fix of any error that `run` throws, unless the error has its own. */
  fix?: string | undefined;
  /** Only needed after the base rollouts. */
  afterRollouts?: true;
  /** Returns what was found, or undefined if there is nothing to report. Throws if something is missing. */
  run(): Finding | Promise<Finding>;
}
type Finding = string | { warning: string } | undefined;

/** A missing requirement with a fix of its own. */
export class MissingRequirement extends Error {
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
  /** Returns whether an error means a missing requirement; other errors are rethrown. */
  isMissing?: (error: unknown) => boolean;
}

/** Checks all items at once. */
export const runChecks = async (items: readonly CheckItem[], o: CheckRun = {}): Promise<Check[]> =>
  (await Promise.all(items.map((item) => look(item, o)))).filter((check) => check !== undefined);

async function look(item: CheckItem, { until, isMissing = () => true }: CheckRun): Promise<Check | undefined> {
  const { name } = item;
  try {
    const found = await item.run();
    if (found === undefined) return undefined;
    return typeof found === 'string'
      ? { name, ok: true, detail: found }
      : { name, ok: true, warning: true, detail: found.warning };
  } catch (error) {
    if (!(error instanceof MissingRequirement) && !isMissing(error)) throw error;
    const detail = reasonOf(error)
      .replace(/\s*\n\s*/g, ' ')
      .trim();
    const fix = error instanceof MissingRequirement && error.fix !== undefined ? error.fix : item.fix;
    const check = { name, ok: false, detail, ...(fix !== undefined && { fix }) };
    if (!item.afterRollouts || until !== 'rollouts') return check;
    return { name, ok: true, warning: true, detail: `needed after the rollouts: ${textOf(check)}` };
  }
}

/** Problem and fix. */
export const textOf = ({ detail, fix }: Check): string => [detail, fix].filter(Boolean).join('; ');

export const warningsOf = (checks: readonly Check[]): string[] =>
  checks.filter(({ warning }) => warning).map(({ name, detail }) => `${name}: ${detail}`);

interface CheckedParts {
  campaign: Campaign;
  /** Describes the target; without a description, analyst and synthesizer are only opened. */
  describe: () => Promise<EnvironmentDescription | undefined>;
  registry: Registry;
}

interface Part {
  unsuited?(description: EnvironmentDescription, rule: SelectionRule): string | undefined | Promise<string | undefined>;
}

export function partChecks({ campaign, describe, registry }: CheckedParts): CheckItem[] {
  const { analyst, synthesizer, selection, router, arms } = campaign;
  const opened = (
    name: 'analyst' | 'synthesizer',
    o: { open: () => Part | Promise<Part>; unsuited: (reason: string) => { warning: string } },
  ): CheckItem => ({
    name,
    afterRollouts: true,
    fix: `correct the field ${name} of the campaign file`,
    async run() {
      const { kind } = campaign[name];
      const part = await o.open();
      const description = await describe();
      if (!description) return `${kind}, not compared with the target`;
      const reason = await part.unsuited?.(description, selection);
      return reason === undefined ? kind : o.unsuited(reason);
    },
  });
  return [
    opened('analyst', {
      open: () => kindOf(registry.analysts, analyst).open(analyst, undefined),
      unsuited(reason) {
        throw new MissingRequirement(reason, 'change the field analyst of the campaign file');
      },
    }),
    opened('synthesizer', {
      async open() {
        if (synthesizer.kind === TARGET_TASKS) {
          const { selects } = await kindOf(registry.analysts, analyst).open(analyst, undefined);
          if (selects === 'outright')
            throw new MissingRequirement(
              `synthesizer.kind: ${TARGET_TASKS} chooses tasks by labels, and analyst.kind ${analyst.kind} labels none`,
              'choose an analyst that labels trajectories, such as llm',
            );
        }
        return kindOf(registry.synthesizers, synthesizer).open(synthesizer, undefined);
      },
      // The baselines still train.
      unsuited: (reason) => ({
        warning: `capabilities will end not_trained and get no adapter; ${synthesizer.kind}: ${reason}`,
      }),
    }),
    { name: 'router', afterRollouts: true, run: () => void kindOf(registry.routers, router) },
    ...arms.flatMap((spec) => armChecks(spec, campaign, registry)),
  ];
}

function armChecks(spec: Campaign['arms'][number], campaign: Campaign, registry: Registry): CheckItem[] {
  const asks: CheckItem = {
    name: `baseline ${armName(spec)}`,
    afterRollouts: true,
    fix: 'correct it in the campaign file',
    run() {
      const kind = kindOf(registry.arms, spec);
      if (campaign.synthesizer.kind === TARGET_TASKS && kind.buildsOnCapabilities?.(spec))
        throw new MissingRequirement(
          `it trains on synthesized environments, and synthesizer.kind ${TARGET_TASKS} makes none`,
        );
      return void kind.languageModel?.(spec, campaign);
    },
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

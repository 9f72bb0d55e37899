/** What each of the method's settings is worth: one of them changed, all else as in the campaigns with all arms. */
import type { Run } from '../../src/report/comparison';
import { selectedBy, unionOf, variantsOf } from '../selection';
import type { Campaigns, CampaignSpec, Finished, Source } from '../campaigns';
import { type Fitted, fittedOf, openLab, storeIn } from '../lab';
import { rowsTable, shareText, type Table } from '../tables';
import { armsSpecs, atFirst, deepBase, type Place, specsOf } from '../places';
import { outcomesOf, rowsOf, runOf, withPolicy } from '../rows';
import { say } from '../say';
import { openBands } from '../scale';
import type { Context, Section, Study } from '../study';
import { hitsOf, plantedIn, sumOfHits } from '../truth';
import { readLabels } from './null';

export const ablations: Study = {
  name: 'ablations',
  async run(context): Promise<Section> {
    const { campaigns, settings, scale } = context;
    const { seeds } = settings;
    const main = await campaigns.all(armsSpecs(atFirst, seeds));
    const target = { arms: [{ kind: 'grpo_target' }] };
    const groups = scale.groups.map(({ groupsPerStep, groupSize }) => ({
      name: `${groupsPerStep} groups of ${groupSize}`,
      specs: specsOf({
        ...{ name: `groups-${groupsPerStep}x${groupSize}`, place: atFirst, seeds },
        fields: { ...target, training: { groupsPerStep, groupSize } },
      }),
    }));
    const bands = specsOf({ name: 'bands-open', place: atFirst, seeds, fields: { calibration: openBands } });
    return {
      tables: {
        selection: { ...(await selection(context, main.finished)), campaigns: main.sources },
        ...(await compared('groups', { campaigns, main, variants: groups, arms: ['trace', 'grpo_target'] })),
        ...(await onDeepBase(context)),
        ...(await compared('bands', {
          campaigns,
          main,
          variants: [{ name: 'bands wide open', specs: bands }],
          arms: ['trace'],
        })),
        weights: { ...(await weights(context, main.finished)), campaigns: main.sources },
      },
    };
  },
};

type Ran = { finished: readonly Finished[]; sources: readonly Source[] };

/** The rule's constants, offline: what would have been selected of the labels that there are. */
async function selection({ campaigns }: Context, finished: readonly Finished[]): Promise<Table> {
  const all = await Promise.all(
    finished.map(async (of) => ({
      passes: await readLabels(campaigns.home, of),
      planted: plantedIn(of.base.path).skills,
      rule: of.campaign.selection,
    })),
  );
  const variants = all[0] ? variantsOf(all[0].rule) : [];
  const rows = variants.map(({ name, rule, passes: n }) => {
    const found = all.map(({ passes, planted }) => {
      const selected = selectedBy({ passes: passes.slice(0, n), rule });
      return { selected, hits: hitsOf({ selected, planted }) };
    });
    const { right, selected, planted } = sumOfHits(found.map(({ hits }) => hits));
    const names = unionOf(found.map((one) => one.selected));
    return [name, names.join(', ') || 'nothing', shareText(right, selected), shareText(right, planted)];
  });
  return { head: ['rule', 'selected in any seed', 'precision', 'recall'], rows };
}

/** Variants beside the campaigns that they change, on the same test tasks. */
async function compared(
  table: string,
  o: {
    campaigns: Campaigns;
    main: Ran;
    variants: readonly { name: string; specs: readonly CampaignSpec[] }[];
    arms: readonly string[];
  },
): Promise<Record<string, Table>> {
  const { campaigns, main, variants, arms } = o;
  let runs: Run[] = main.finished.map(runOf);
  const sources = [...main.sources];
  const capabilities = [['as shipped', statusOf(main.finished)]];
  for (const { name, specs } of variants) {
    const ran = await campaigns.all(specs);
    runs = runs.map((run) => withVariant({ run, of: ran.finished, name, arms }));
    sources.push(...ran.sources);
    capabilities.push([name, statusOf(ran.finished)]);
  }
  const names = ['base', ...arms, ...variants.flatMap(({ name }) => arms.map((arm) => `${arm}, ${name}`))];
  return {
    [table]: { ...rowsTable({ rows: rowsOf({ runs, names, against: ['base', ...arms] }) }), campaigns: sources },
    [`${table}-capabilities`]: { head: ['variant', 'capabilities by what became of them'], rows: capabilities },
  };
}

/** The run with what a variant of its seed came to. */
function withVariant(o: { run: Run; of: readonly Finished[]; name: string; arms: readonly string[] }): Run {
  const { run, of, name, arms } = o;
  const other = of.find(({ report }) => report.campaign.seed === run.report.campaign.seed);
  if (!other) return run;
  const outcomes = runOf(other);
  return arms.reduce((changed, wanted) => {
    const arm = other.report.arms?.find((one) => one.name === wanted);
    if (!arm) return changed;
    return withPolicy(changed, { arm: { ...arm, name: `${wanted}, ${name}` }, outcomes: outcomesOf(outcomes, wanted) });
  }, run);
}

/** `trained 8, not_calibrated 1`, over all seeds. */
function statusOf(finished: readonly Finished[]): string {
  const all = finished.flatMap(({ report }) => report.capabilities ?? []).map(({ status = 'unknown' }) => status);
  return (
    unionOf([all])
      .map((status) => `${status} ${all.filter((one) => one === status).length}`)
      .join(', ') || 'none'
  );
}

/** Hints off, and bands that let everything pass, where they matter most: on a base that hardly ever shows what it lacks. */
async function onDeepBase(context: Context): Promise<Record<string, Table>> {
  const { campaigns, settings } = context;
  const base = await deepBase(context);
  const place: Place = base ? { ...atFirst, name: 'deep', base } : atFirst;
  const main = await campaigns.all(armsSpecs(place, settings.seeds));
  const variant = (name: string, calibration: Record<string, unknown>) => ({
    name,
    specs: specsOf({
      ...{ name: `${name.replaceAll(' ', '-')}-${place.name}`, place, seeds: settings.seeds },
      fields: { calibration },
    }),
  });
  const variants = [variant('hints off', { hintShare: 0 }), variant('bands wide open', openBands)];
  return compared('deep', { campaigns, main, variants, arms: ['trace'] });
}

const UNIT = 'sum, each adapter at weight 1';
const NORMALISED = 'sum, each adapter at weight 1/n';

/** The sum of all adapters, whole and divided by their number. */
async function weights({ campaigns: { home }, signal }: Context, finished: readonly Finished[]): Promise<Table> {
  if (finished.length === 0) return { head: ['policy'], rows: [] };
  say('ablations: weights of the sum');
  const lab = await openLab({ home, base: atFirst.base, signal });
  try {
    const runs: Run[] = [];
    for (const of of finished) {
      let run = runOf(of);
      const adapters = adaptersOf(await fittedOf(storeIn(home), of));
      const arm = run.report.arms?.find(({ role }) => role === 'routed');
      if (!arm || adapters.length === 0) continue;
      for (const [name, weight] of [
        [UNIT, 1],
        [NORMALISED, 1 / adapters.length],
      ] as const) {
        const policy = { base: of.report.campaign.baseModel, adapters: adapters.map((one) => ({ ...one, weight })) };
        const outcomes = await lab.evaluate({ of, title: `test: ${name}`, policy });
        const allRollouts = { ...arm.allRollouts, value: null, n: 0 };
        run = withPolicy(run, { arm: { ...arm, name, allRollouts }, outcomes });
      }
      runs.push(run);
    }
    return rowsTable({ rows: rowsOf({ runs, names: ['base', 'trace', UNIT, NORMALISED], against: ['base', UNIT] }) });
  } finally {
    await lab.close();
  }
}

const adaptersOf = (fitted: Fitted | undefined) =>
  (fitted?.router.options ?? []).flatMap(({ policy: { adapters } }) => (adapters.length === 1 ? adapters : []));

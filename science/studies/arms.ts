/** Which way of spending the training rollouts gains most, and where: all arms, and what other routers would have made of the adapters. */
import type { Run } from '../../src/report/comparison';
import type { Finished } from '../campaigns';
import { fittedOf, type Lab, openLab, type Option, storeIn } from '../lab';
import { rowsTable, type Table } from '../tables';
import { armsHere, armsSpecs, type Place, placesOf, specsOf } from '../places';
import { outcomesOf, rowsOf, runOf, withPolicy } from '../rows';
import { say } from '../say';
import type { Context, Section, Study } from '../study';

const SINGLE = 'trace, single adapters only';
const UNIT = 'trace, weights 1 only';
const ALL = 'all adapters, no router';
const COMPOSITE = 'trace with a composite';
const TARGET = 'grpo_target';

const shown = ['base', 'trace', SINGLE, UNIT, ALL, COMPOSITE, ...armsHere];

export const arms: Study = {
  name: 'arms',
  async run(context): Promise<Section> {
    const tables: Record<string, Table> = {};
    for (const place of await placesOf(context)) {
      say(`arms: ${place.title}`);
      const { seeds } = context.settings;
      const main = await context.campaigns.all(armsSpecs(place, seeds));
      const third = { composites: { share: 1 / 3 } };
      const composite = await context.campaigns.all(
        specsOf({ name: `composite-${place.name}`, place, seeds, fields: third }),
      );
      const runs = withComposites(await withRouters({ context, place, finished: main.finished }), composite.finished);
      const reasons = { [COMPOSITE]: whyNone(composite.finished) };
      const all = rowsOf({ runs, names: shown, against: ['base', TARGET] });
      const rows = all.filter(({ name, success }) => success ?? name in reasons);
      const { head, rows: cells } = rowsTable({ rows, reasons });
      const failed = failures(main.finished).map((cell) => head.map((_, n) => cell[n] ?? ''));
      tables[place.name] = { head, rows: [...cells, ...failed], campaigns: [...main.sources, ...composite.sources] };
    }
    return { tables };
  },
};

/** Each run with what a router over single adapters, and the largest sum, come to: from the adapters that are there. */
async function withRouters(o: { context: Context; place: Place; finished: readonly Finished[] }): Promise<Run[]> {
  const { context, place, finished } = o;
  const { home } = context.campaigns;
  if (finished.length === 0) return [];
  const lab = await openLab({ home, base: place.base, signal: context.signal });
  try {
    const runs: Run[] = [];
    for (const one of finished) runs.push(withSum(await withOtherRouters({ lab, home, of: one })));
    return runs;
  } finally {
    await lab.close();
  }
}

/** What the same router, fitted on a part of the options, comes to; not where it is all of them. */
async function withOtherRouters(o: { lab: Lab; home: string; of: Finished }): Promise<Run> {
  const { lab, home, of } = o;
  let run = runOf(of);
  const fitted = await fittedOf(storeIn(home), of);
  const routed = of.report.arms?.find(({ role }) => role === 'routed');
  if (!fitted || !routed) return run;
  const isWhole = ({ policy }: Option) => policy.adapters.every(({ weight }) => weight === 1);
  const isSingle = (option: Option) => isWhole(option) && option.policy.adapters.length <= 1;
  for (const [name, isOffered] of [
    [SINGLE, isSingle],
    [UNIT, isWhole],
  ] as const) {
    const options = fitted.router.options.filter(isOffered).map((option) => option.name);
    if (options.length === fitted.router.options.length) continue;
    const router = await lab.refit({ of, fitted, options });
    const outcomes = await lab.evaluate({ of, title: `test: ${name}`, policy: { router } });
    // The campaign's own router has cost rollouts of the other options as well.
    const allRollouts = { ...routed.allRollouts, value: null, n: 0 };
    run = withPolicy(run, { arm: { ...routed, name, allRollouts }, outcomes });
  }
  return run;
}

function withSum(run: Run): Run {
  const sums = run.report.arms?.filter(({ role }) => role === 'sum') ?? [];
  const adapters = run.report.arms?.filter(({ role }) => role === 'adapter') ?? [];
  const largest = sums.find(({ name }) => name.split('+').length === adapters.length);
  return largest ? withPolicy(run, { arm: { ...largest, name: ALL }, outcomes: outcomesOf(run, largest.name) }) : run;
}

/** Each run with the routed policy of the campaign of its seed that has a composite. */
const withComposites = (runs: readonly Run[], composites: readonly Finished[]): Run[] =>
  runs.map((run) => {
    const other = composites.find(({ report }) => report.campaign.seed === run.report.campaign.seed);
    const routed = other?.report.arms?.find(({ role }) => role === 'routed');
    if (!other || !routed || !compositeIn(other)?.adapter) return run;
    return withPolicy(run, { arm: { ...routed, name: COMPOSITE }, outcomes: outcomesOf(runOf(other), routed.name) });
  });

const compositeIn = ({ report }: Finished) => report.capabilities?.find(({ parts }) => parts);

/** By seed, why there is no adapter of a composite. */
function whyNone(composites: readonly Finished[]): string {
  const reasons = composites.flatMap((one) => {
    const composite = compositeIn(one);
    if (composite?.adapter) return [];
    const why = composite ? `${composite.status}: ${composite.reason}` : one.report.selection?.noComposite;
    return [`seed ${one.seed}: ${why ?? 'none was looked for'}`];
  });
  return reasons.length > 0 ? `none (${reasons.join('; ')})` : 'no campaign came to its end';
}

/** Rows of arms that came to nothing, with the reason in place of their success. */
const failures = (finished: readonly Finished[]): string[][] =>
  finished.flatMap(({ seed, report }) =>
    (report.arms ?? []).flatMap(({ name, status, reason }) =>
      status === 'failed' ? [[`${name} (seed ${seed})`, '', '', `failed: ${reason}`]] : [],
    ),
  );

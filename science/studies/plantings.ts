/** Whether the analyst by rules selects what was planted, and nothing else: in base models, and in scripted agents where a base is too dear. */
import { rules } from '../../src/analyst/rules/rules';
import { selectionRuleSchema } from '../../src/domain/campaign';
import { createShop } from '../../src/environments/shop/shop';
import { type Skill, SKILLS } from '../../src/environments/shop/tasks';
import { noLedger } from '../../test/support/memory-ledger';
import { rollouts } from '../../test/unit/analyst/simulation';
import { baseWith, shipped, type Base } from '../bases';
import { Interrupted } from '../processes';
import { shareText, type Table } from '../tables';
import { atFirst, specsOf } from '../places';
import { say } from '../say';
import { selectedBy } from '../selection';
import type { Context, Section, Study } from '../study';
import { hitsOf, plantedIn, sumOfHits, type Hits } from '../truth';

/** Of the list of `make test-plantings`. */
const IN_BASES: Skill[][] = [
  ['compute', 'refuse', 'tell'],
  ['ask', 'refuse', 'tell'],
];
const FRACTION = 0.75;
/** Trajectories of a scripted agent, and its chance of a slip in each turn. */
const SCRIPTED = { count: 340, noise: 0.03 };

export const plantings: Study = {
  name: 'plantings',
  async run(context): Promise<Section> {
    const { settings, scale, signal } = context;
    const bases: Base[] = [shipped];
    for (const skills of scale.makesBases ? IN_BASES : [])
      bases.push(await baseWith({ skills, fraction: FRACTION, settings, signal }));
    return { tables: { bases: await inBases(context, bases), scripted: await inScripted(context) } };
  },
};

const headOfHits = ['precision', 'recall'];
const hitsText = ({ right, selected, planted }: Hits): string[] => [
  shareText(right, selected),
  shareText(right, planted),
];

async function inBases(context: Context, bases: readonly Base[]): Promise<Table> {
  const specs = bases.flatMap((base) =>
    specsOf({ name: 'planting', place: { ...atFirst, base }, seeds: context.settings.seeds }).map((spec) => ({
      ...spec,
      until: 'selection' as const,
    })),
  );
  const { finished, sources } = await context.campaigns.all(specs);
  const found = finished.map(({ base, seed, report }) => {
    const { skills, lacks, missed } = plantedIn(base.path);
    const candidates = report.selection?.candidates ?? [];
    const selected = candidates.filter((one) => one.selected);
    const hits = hitsOf({ selected: selected.map(({ name }) => name), planted: skills });
    const votes = selected.map(({ name, votes: of, passes }) => `${name} ${of}/${passes}`).join(', ') || 'nothing';
    const planted = skills.map((skill) => `${skill} ${lacks[skill]}`).join(', ');
    const gates = missed.length === 0 ? 'all passed' : `missed: ${missed.join('; ')}`;
    return { hits, cells: [planted, gates, `${seed}`, votes, ...hitsText(hits)] };
  });
  const rows = [
    ...found.map(({ cells }) => cells),
    ['all', '', '', '', ...hitsText(sumOfHits(found.map((o) => o.hits)))],
  ];
  const head = ['planted in the base', 'gates of the base', 'seed', 'selected, votes', ...headOfHits];
  return { head, rows, campaigns: sources };
}

/** All plantings of a few skills, with lacks of several strengths: what is planted weakly need not be found. */
async function inScripted({ scale, settings, signal }: Context): Promise<Table> {
  const all = Array.from({ length: 2 ** SKILLS.length }, (_, bits) => SKILLS.filter((_, i) => bits & (2 ** i)));
  const planted = all.filter(({ length }) => length >= 1 && length <= scale.planted);
  const rows: string[][] = [];
  for (const fraction of scale.fractions) {
    say(`plantings: ${planted.length} scripted agents, lacks of ${fraction}`);
    const hits: Hits[] = [];
    for (const lacks of planted)
      for (const seed of settings.seeds) {
        if (signal.aborted) throw new Interrupted();
        hits.push(hitsOf({ selected: await selectedOf({ lacks, seed, fraction }), planted: lacks }));
      }
    const exact = hits.filter(({ right, selected, planted: wanted }) => right === selected && right === wanted).length;
    rows.push([`${fraction}`, shareText(exact, hits.length), ...hitsText(sumOfHits(hits))]);
  }
  return { head: ['lack', 'plantings found exactly', ...headOfHits], rows };
}

async function selectedOf(o: { lacks: readonly Skill[]; seed: number; fraction: number }): Promise<string[]> {
  const { seed } = o;
  const rule = selectionRuleSchema.parse({});
  const analyst = rules.open({ kind: 'rules' }, undefined);
  const description = await createShop().describe();
  const work = { progress: () => {}, signal: new AbortController().signal, ledger: noLedger };
  const input = { rollouts: await rollouts({ ...o, ...SCRIPTED }), description, ...work };
  const { candidates } = await analyst.discover({ ...input, quotable: new Set(), rule, seed });
  const passes = await Promise.all(
    Array.from({ length: rule.passes }, (_, pass) => analyst.label({ ...input, candidates, pass, seed })),
  );
  return selectedBy({ passes, rule });
}

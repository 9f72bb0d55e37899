/** Where nothing can be learned nothing may be found: learning rate 0, rewards that mean nothing, labels that mean nothing. */
import { join } from 'node:path';
import { type LabelPass, labelPassSchema } from '../../src/domain/capability';
import { direction } from '../../src/domain/statistics';
import { seededRandom } from '../../src/domain/seeds';
import type { Report } from '../../src/report/model';
import type { Campaigns, CampaignSpec, Finished, Source } from '../campaigns';
import { labelsOf, storeIn } from '../lab';
import { rowsTable, shareText, type Table } from '../tables';
import { armsSpecs, atFirst, specsOf } from '../places';
import { Interrupted } from '../processes';
import { rowsOf, runOf } from '../rows';
import { say } from '../say';
import { openBands } from '../scale';
import { selectedBy, shuffledLabels } from '../selection';
import { shuffledModules } from '../shuffled-modules';
import type { Context, Section, Study } from '../study';

export const nullTests: Study = {
  name: 'null',
  async run(context): Promise<Section> {
    const { campaigns, settings } = context;
    const still = specsOf({
      ...{ name: 'null-rate', place: atFirst, seeds: settings.seeds },
      fields: { training: { learningRate: 0, steps: 2, checkpointEvery: 2 }, arms: [{ kind: 'grpo_target' }] },
    });
    const main = await campaigns.all(armsSpecs(atFirst, settings.seeds));
    return {
      tables: {
        rate: await gains(campaigns, still),
        rewards: await gains(campaigns, await shuffledSpecs(context, main.finished)),
        labels: await labels(context, main),
      },
    };
  },
};

/** The campaign once more, with its modules' rewards shuffled. */
async function shuffledSpecs({ campaigns, settings }: Context, finished: readonly Finished[]): Promise<CampaignSpec[]> {
  const specs: CampaignSpec[] = [];
  for (const of of finished) {
    const modules = await shuffledModules({ home: campaigns.home, of, folder: join(settings.home, 'null-rewards') });
    const fields = { synthesizer: { kind: 'given', modules }, calibration: openBands };
    if (modules !== undefined)
      specs.push(...specsOf({ name: 'null-rewards', place: atFirst, seeds: [of.seed], fields }));
  }
  return specs;
}

async function gains(campaigns: Campaigns, specs: readonly CampaignSpec[]): Promise<Table> {
  const { finished, sources } = await campaigns.all(specs);
  for (const { name, report } of finished)
    if (!report.capabilities?.some(({ adapter }) => adapter))
      throw new Error(`${name}: nothing was trained, so it tests nothing; its report says why`);
  const runs = finished.map(runOf);
  const names = [...new Set(runs.flatMap(({ matrix }) => matrix.options))].filter((name) => !name.includes('+'));
  const { head, rows } = rowsTable({ rows: rowsOf({ runs, names, against: ['base'] }) });
  const found = verdicts(finished.map(({ report }) => report)).map((cells) => head.map((_, n) => cells[n] ?? ''));
  return { head, rows: [...rows, ...found], campaigns: sources };
}

/** Rows of what the reports said: how often a policy was above base, and an adapter was found to help. */
function verdicts(reports: readonly Report[]): string[][] {
  const compared = reports.flatMap(({ arms = [] }) =>
    arms.flatMap(({ role, differenceToBase }) =>
      role !== 'bound' && differenceToBase?.interval ? [direction(differenceToBase.interval) === 'up'] : [],
    ),
  );
  const judged = reports.flatMap(({ capabilities = [] }) =>
    capabilities.flatMap(({ statement }) => (statement ? [statement.verdict === 'helps'] : [])),
  );
  const share = (all: readonly boolean[]) => shareText(all.filter(Boolean).length, all.length);
  return [
    ['policies reported as above base', '', '', share(compared)],
    ['adapters reported as a help', '', '', share(judged)],
  ];
}

/** How often the rule selects anything of labels that were dealt out anew. */
async function labels(
  { campaigns, scale, signal }: Context,
  { finished, sources }: { finished: readonly Finished[]; sources: readonly Source[] },
): Promise<Table> {
  const rows: string[][] = [];
  for (const of of finished) {
    say(`null: labels of ${of.name}, shuffled ${scale.permutations} times`);
    const passes = await readLabels(campaigns.home, of);
    const random = seededRandom('labels shuffled', of.seed);
    let found = 0;
    for (let n = 0; n < scale.permutations; n++) {
      if (signal.aborted) throw new Interrupted();
      const selected = selectedBy({ passes: shuffledLabels(passes, random), rule: of.campaign.selection });
      found += selected.length > 0 ? 1 : 0;
    }
    const asTheyAre = selectedBy({ passes, rule: of.campaign.selection });
    rows.push([`${of.seed}`, asTheyAre.join(', ') || 'nothing', shareText(found, scale.permutations)]);
  }
  const head = ['seed', 'selected of the labels as they are', 'anything selected of shuffled labels'];
  return { head, rows, campaigns: sources };
}

export async function readLabels(home: string, of: Finished): Promise<LabelPass[]> {
  const store = storeIn(home);
  const refs = await labelsOf(store, of);
  const texts = await Promise.all(refs.map(async (ref) => (await store.read(ref)).toString('utf8')));
  return texts.map((text) => labelPassSchema.parse(JSON.parse(text)));
}

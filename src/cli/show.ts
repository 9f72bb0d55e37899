/** `campaign show`: prints a rollout with its conversation, or the rollouts behind a figure or an artifact. */
import { openStore } from '../store/open-store';
import { lineage, lineageText, UnknownStartError } from '../report/lineage';
import { wrap } from '../terminal';
import { shownRollout, shownText } from '../view/shown';
import { campaignsOf } from './campaign-status';
import { UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { findReport } from './reports';
import { withServer } from './temporal';
import { indexOf, named } from './view';

type ShowOptions = CommonOptions & { campaign?: string };

const ROLLOUT = /^[0-9a-f]{8,64}$/;
const WIDEST = 100;

export async function show(id: string, options: ShowOptions): Promise<string> {
  const rollout = ROLLOUT.test(id) ? await findRollout(id, options) : undefined;
  if (rollout) return options.json ? JSON.stringify(rollout) : shownText(rollout, columns());
  const home = homeOf(options);
  const found = findReport({ home: home.root, name: options.campaign });
  try {
    const tree = await lineage({
      store: await openStore(home.root),
      start: id,
      ...(found && { report: found.report }),
    });
    if (options.json) return JSON.stringify(tree);
    const campaign = found ? ` ${found.name}` : '';
    const read = `conversations: \`campaign view${campaign}\`, with #conversations?figure=${id} after its address`;
    return wrapTree(`${lineageText(tree)}\n${read}`, process.stdout.columns);
  } catch (error) {
    if (!(error instanceof UnknownStartError)) throw error;
    const where = found ? `searched the rollouts and the report of ${found.name}` : `${home.root} has no report`;
    throw new UserError(`${error.message} (${where}; an id may be cut to its first 8 digits)`);
  }
}

const columns = (): number => Math.min(process.stdout.columns || 60, WIDEST);

/** Returns the rollout of the campaign that is named, else of any. */
async function findRollout(id: string, options: ShowOptions) {
  const home = homeOf(options);
  const store = await openStore(home.root);
  const names = options.campaign === undefined ? await allNames(options) : [await named(options.campaign, options)];
  for (const campaign of names) {
    const index = indexOf(store, home.root, campaign);
    await index.refresh();
    const one = index.find(id);
    if (one) return shownRollout(index, store, one);
  }
  return undefined;
}

const allNames = (options: CommonOptions): Promise<string[]> =>
  withServer(options, async (temporal) => (await campaignsOf(temporal, options)).map(({ name }) => name));

/** The least room for a node's text. */
const NARROWEST = 30;

/** Wraps a line of the tree under itself, within its branch; off a terminal lines stay whole. */
const wrapTree = (text: string, width = Infinity): string =>
  text
    .split('\n')
    .flatMap((line) => {
      const [branch] = /^[│├└─ ]*/.exec(line)!;
      const below = branch.replace('├─', '│ ').replace('└─', '  ');
      const room = Math.max(NARROWEST, width - branch.length);
      return wrap(line.slice(branch.length), room).map((one, n) => (n === 0 ? branch : below) + one);
    })
    .join('\n');

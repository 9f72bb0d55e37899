/** `campaign show`: prints a rollout with its conversation, or the rollouts behind a figure or an artifact. */
import { openStore } from '../store/open-store';
import { lineage, lineageText, UnknownStartError } from '../report/lineage';
import { columnsOf } from '../terminal';
import { shownRollout, shownText } from '../view/shown';
import { campaignNames, chooseCampaign } from './campaigns';
import { UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { createIndex } from '../view/rollouts';
import { readReport, reported } from './reports';

type ShowOptions = CommonOptions & { campaign?: string };

const ROLLOUT = /^[0-9a-f]{8,64}$/;
const WIDEST = 100;

export async function show(id: string, options: ShowOptions): Promise<string> {
  const columns = Math.min(columnsOf() || 60, WIDEST);
  const rollout = ROLLOUT.test(id) ? await findRollout(id, options) : undefined;
  if (rollout) return options.json ? JSON.stringify(rollout) : shownText(rollout, columns);
  const { root } = homeOf(options);
  const name = options.campaign ?? reported(root)[0];
  const report = name === undefined ? {} : { report: readReport({ home: root, name }) };
  try {
    const tree = await lineage({ store: await openStore(root), start: id, ...report });
    if (options.json) return JSON.stringify(tree);
    const view = ['campaign view', name].filter(Boolean).join(' ');
    return `${lineageText(tree)}\nconversations: \`${view}\`, with #conversations?figure=${id} after its address`;
  } catch (error) {
    if (!(error instanceof UnknownStartError)) throw error;
    const where = name === undefined ? `${root} has no report` : `searched the rollouts and the report of ${name}`;
    throw new UserError('not_found', 'id', `${error.message} (${where}; an id may be cut to its first 8 digits)`);
  }
}

/** Returns the rollout of the campaign that is named, else of any. */
async function findRollout(id: string, options: ShowOptions) {
  const home = homeOf(options);
  const store = await openStore(home.root);
  const names =
    options.campaign === undefined ? await campaignNames(home) : [await chooseCampaign(home, options.campaign)];
  for (const campaign of names) {
    const index = createIndex({ store, campaign });
    await index.refresh();
    const one = index.find(id);
    if (one) return shownRollout(index, store, one);
  }
  return undefined;
}

/** `campaign export NAME DIR --conversations FORMAT`: the rollouts of a campaign as logs that others read; it need not have ended. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { openStore } from '../artifacts/open-store';
import {
  openAtifFolder,
  openInspectLog,
  fileNameOf,
  type LogWriter,
  type WrittenBatch,
} from '../conversations/written';
import { replaceFolder } from '../gateway/whole-folder';
import { batchesBehind } from '../report/lineage';
import { wholeNumber } from '../report/format';
import { type Asked, filterNames, keptOf } from '../view/filter';
import type { IndexedBatch } from '../view/rollouts';
import { madeOf, seedOf } from '../view/shown';
import { UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { findReport, reported } from './reports';
import { indexOf, named } from './view';

export type Format = 'inspect' | 'atif';

export interface ConversationOptions extends CommonOptions {
  conversations: Format;
  filter?: string[];
}

/** By it a folder is known for an earlier export. */
const MARK = '.campaign-export.json';

/** @throws UserError */
export async function exportConversations(name: string, dir: string, options: ConversationOptions): Promise<string> {
  const { conversations: format, filter = [] } = options;
  const { figure, ...asked } = askedOf(filter);
  const campaign = await named(name, options);
  const { root } = homeOf(options);
  const store = await openStore(root);
  const index = indexOf(store, root, campaign);
  await index.refresh();
  const report = reported(root).includes(campaign) ? findReport({ home: root, name: campaign })?.report : undefined;
  const batches = figure === undefined ? undefined : await batchesBehind({ store, start: figure, report });
  const rows = await keptOf(index, asked, batches);
  if (rows.length === 0)
    throw new UserError(
      `${campaign} has no rollouts${filter.length > 0 ? ` with ${filter.join(' ')}` : ''}; \`campaign view ${campaign}\` shows what there is`,
    );
  const folder = resolve(dir);
  const counts = { batches: 0, written: 0, left: 0 };
  const names = new Set<string>();

  async function open(made: string, batch: IndexedBatch): Promise<LogWriter> {
    const { title, purpose: stage, what, of } = batch;
    const { sha256 } = batch.ref;
    const facts = await madeOf(store, batch);
    const shas = (kind: string) => facts.flatMap((one) => (one.name === kind ? [one.value] : []));
    const about: WrittenBatch = {
      campaign,
      title,
      stage,
      what,
      of,
      sha256,
      adapters: shas('adapter'),
      routers: shas('router'),
    };
    const name = fileNameOf(title.replace(/[^\w.=+-]+/g, '-'));
    // The same title twice is of batches that differ, as after a retry.
    const file = join(made, names.has(name) ? `${name}-${sha256.slice(0, 8)}` : name);
    names.add(name);
    counts.batches += 1;
    if (format === 'inspect') return openInspectLog({ file: `${file}.eval`, batch: about });
    await mkdir(file);
    return openAtifFolder({ folder: file, batch: about });
  }

  await replaceFolder({
    folder,
    mark: MARK,
    write: async (made) => {
      let current: { batch: IndexedBatch; log: LogWriter } | undefined;
      for await (const { one, rollout } of index.each(rows)) {
        if (current?.batch !== one.batch) {
          await current?.log.close();
          current = { batch: one.batch, log: await open(made, one.batch) };
        }
        const isWritten = await current.log.add({ rollout, seed: seedOf(one.id), labels: one.labels });
        if (isWritten) counts.written += 1;
        else counts.left += 1;
      }
      await current?.log.close();
      await writeFile(join(made, MARK), `${JSON.stringify({ campaign, format, filter })}\n`);
    },
  });
  const left = counts.left > 0 ? `; left out, as they have no conversation: ${wholeNumber(counts.left)} broken` : '';
  const then = format === 'inspect' ? `; \`inspect view --log-dir ${dir}\` shows them` : '';
  return `${folder}: rollouts: ${wholeNumber(counts.written)}, batches: ${counts.batches}${left}${then}`;
}

/** @throws UserError */
function askedOf(filter: readonly string[]): Asked {
  const known = [...filterNames, 'figure'];
  return Object.fromEntries(
    filter.map((one) => {
      const [name = '', ...value] = one.split('=');
      if (!known.includes(name) || value.join('=') === '')
        throw new UserError(`--filter is ${one}; give NAME=VALUE, where NAME is one of ${known.join(', ')}`);
      return [name, value.join('=')];
    }),
  );
}

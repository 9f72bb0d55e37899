/**
 * `campaign export`: a finished campaign as a folder that can be published and served without this home; or, with --conversations, the rollouts of
 * one that need not have ended, as logs that others read.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { projectRoot } from '../artifacts/project-root';
import { openStore } from '../artifacts/open-store';
import {
  fileNameOf,
  type LogWriter,
  openAtifFolder,
  openInspectLog,
  type WrittenBatch,
} from '../conversations/written';
import { exportCampaign } from '../gateway/export';
import { recordedOf } from '../gateway/served';
import { replaceFolder } from '../gateway/whole-folder';
import { modelOf } from '../policy/base-model';
import { createMerger } from '../policy/merge';
import { wholeNumber } from '../report/format';
import { rolloutsBehind } from '../report/lineage';
import { type Asked, filterNames, keptOf } from '../view/filter';
import type { IndexedBatch } from '../view/rollouts';
import { madeOf, seedOf } from '../view/shown';
import { UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { pythonPath } from './project';
import { findReport, readReport, reported, requireReported } from './reports';
import { indexOf, named } from './view';

export interface ExportOptions extends CommonOptions {
  baseModel?: string;
  license: string;
  conversations?: Format;
  filter?: string[];
}

/** @throws UserError */
export async function exportTo(name: string, folder: string, options: ExportOptions): Promise<string> {
  const { baseModel, license, conversations, filter } = options;
  if (conversations) return exportConversations(name, folder, { ...options, conversations });
  if (filter) throw new UserError('--filter is of conversations; name their format with --conversations');
  const home = homeOf(options);
  requireReported({ home: home.root, name });
  const report = readReport({ home: home.root, name });
  const publicName = /^[\w.-]+(\/[\w.-]+)?$/;
  if (baseModel !== undefined && !publicName.test(baseModel))
    throw new UserError(`--base-model is ${baseModel}; give the name by which others know it, such as OWNER/MODEL`);
  if (!/^[\w.+-]+$/.test(license))
    throw new UserError(`--license is ${license}; give its short name, such as apache-2.0`);
  const [own = ''] = modelOf(report.campaign.baseModel).split('@');
  const store = await openStore(home.root);
  const { baselines, sampling } = await recordedOf(store, name);
  await exportCampaign({
    ...{ store, baselines, sampling, report, license, folder: resolve(folder), baseName: baseModel ?? own },
    merge: createMerger({ store, python: pythonPath() }),
    paths: [home.root, projectRoot, homedir(), tmpdir(), process.cwd()],
  });
  const note =
    baseModel === undefined ? `; the base model is called ${own} in it: --base-model gives its public name` : '';
  return `${resolve(folder)}: README.md says how to serve and publish it${note}`;
}

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
  const behind = figure === undefined ? undefined : await rolloutsBehind({ store, start: figure, report });
  const rows = await keptOf(index, asked, behind);
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

/**
 * `campaign export` writes a finished campaign into a folder that can be published and served without this home. With --rollouts it writes the
 * rollouts of a campaign that may still run.
 */
import { appendFile, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { projectRoot } from '../store/project-root';
import { openStore } from '../store/open-store';
import type { Message } from '../domain/messages';
import { toWellFormed } from '../domain/plain-text';
import type { Rollout } from '../domain/rollout';
import { exportCampaign } from '../gateway/export';
import { baselinesOf } from '../gateway/served';
import { replaceFolder } from '../gateway/whole-folder';
import { modelOf } from '../policy/base-model';
import { createMerger } from '../policy/merge';
import { callsOf, toWireMessage, toWireTools } from '../policy/wire';
import { wholeNumber } from '../report/format';
import { keptOf } from '../view/filter';
import { createIndex, type IndexedBatch, type IndexedRollout, toolsOf } from '../view/rollouts';
import { chooseCampaign } from './campaigns';
import { invalidOption, UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { pythonPath } from './project';
import { readReport } from './reports';

interface ExportOptions extends CommonOptions {
  baseModel?: string;
  license: string;
  rollouts?: boolean;
}

/** @throws UserError */
export async function exportTo(name: string, folder: string, options: ExportOptions): Promise<string> {
  const { baseModel, license, rollouts } = options;
  if (rollouts) return exportRollouts(name, folder, options);
  const home = homeOf(options);
  const report = readReport({ home: home.root, name });
  const publicName = /^[\w.-]+(\/[\w.-]+)?$/;
  if (baseModel !== undefined && !publicName.test(baseModel))
    throw invalidOption('--base-model', baseModel, 'give its public name, such as OWNER/MODEL');
  if (!/^[\w.+-]+$/.test(license)) throw invalidOption('--license', license, 'give its short name, such as apache-2.0');
  const [own = ''] = modelOf(report.campaign.baseModel).split('@');
  const store = await openStore(home.root);
  await exportCampaign({
    store,
    baselines: await baselinesOf(store, name),
    sampling: report.campaign.config?.evaluation.sampling,
    report,
    license,
    folder: resolve(folder),
    baseName: baseModel ?? own,
    merge: createMerger({ store, python: pythonPath() }),
    paths: [home.root, projectRoot, homedir(), tmpdir(), process.cwd()],
  });
  const note =
    baseModel === undefined ? `; the base model is called ${own} in it: --base-model gives its public name` : '';
  return `${resolve(folder)}: README.md says how to serve and publish it${note}`;
}

/** An earlier export is recognized by this file. */
const MARK = '.campaign-export.json';

/** @throws UserError */
async function exportRollouts(name: string, dir: string, options: CommonOptions): Promise<string> {
  const home = homeOf(options);
  const { root } = home;
  const campaign = await chooseCampaign(home, name);
  const store = await openStore(root);
  const index = createIndex({ store, campaign });
  await index.refresh();
  const rows = await keptOf(index, {});
  if (rows.length === 0)
    throw new UserError(
      'not_found',
      'rollouts',
      `${campaign} has no rollouts yet; \`campaign status ${campaign}\` shows its state`,
    );
  const folder = resolve(dir);
  const tools = new Map<IndexedBatch, object[]>();
  await replaceFolder({
    folder,
    mark: MARK,
    write: async (made) => {
      for await (const { one, rollout } of index.each(rows)) {
        const { batch } = one;
        if (!tools.has(batch)) tools.set(batch, toWireTools(await toolsOf(store, batch)));
        // Batches that share a title, as after a retry, share a file.
        const file = `${batch.title.replace(/[^\w=+]+/g, '-').slice(0, 100)}.jsonl`;
        await appendFile(join(made, file), `${lineOf(rollout, campaign, one, tools.get(batch)!)}\n`);
      }
      await writeFile(join(made, MARK), `${JSON.stringify({ campaign })}\n`);
    },
  });
  const failed = rows.filter(({ outcome }) => outcome === 'broken').length;
  const note = failed > 0 ? `, ${wholeNumber(failed)} of them failed (infrastructure)` : '';
  return `${folder}: ${wholeNumber(rows.length)} rollouts${note}`;
}

/** One rollout as JSON without halves of surrogate pairs, which strict readers refuse. */
function lineOf(rollout: Rollout, campaign: string, one: IndexedRollout, tools: object[]): string {
  const { key: id, task, attempt } = rollout;
  const { batch, stop, labels } = one;
  const { purpose: stage, of: arm } = batch;
  const metadata = { campaign, stage, arm, batch: batch.ref.sha256, attempt, stop, labels };
  const line =
    rollout.status === 'broken'
      ? { id, task, error: rollout.error, metadata }
      : {
          ...{ id, task, messages: rollout.messages.map(toLineMessage), ...(tools.length > 0 && { tools }) },
          ...{ reward: rollout.reward, reference: rollout.reference, metadata },
        };
  return JSON.stringify(line, (_, value: unknown) => (typeof value === 'string' ? toWellFormed(value) : value));
}

/** A simulated user may call tools of its own, for which the dialect has no place: its calls stand where an assistant's do. */
const toLineMessage = (message: Message): object =>
  message.role === 'user' && message.toolCalls?.length
    ? { ...toWireMessage(message), tool_calls: callsOf(message) }
    : toWireMessage(message);

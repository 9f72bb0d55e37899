/** `campaign export`: a finished campaign as a folder that can be published and served without this home. */
import { homedir, tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { projectRoot } from '../artifacts/given';
import { openStore } from '../artifacts/open-store';
import { exportCampaign } from '../gateway/export';
import { recordedOf } from '../gateway/record';
import { modelOf } from '../policy/base-model';
import { createMerger } from '../policy/merge';
import { UserError } from './errors';
import { exportConversations, type Format } from './export-conversations';
import { type CommonOptions, homeOf } from './options';
import { pythonPath } from './project';
import { readReport, requireReported } from './reports';

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
  const { baselines } = await recordedOf(store, name);
  await exportCampaign({
    ...{ store, baselines, report, license, folder: resolve(folder), baseName: baseModel ?? own },
    merge: createMerger({ store, python: pythonPath() }),
    paths: [home.root, projectRoot, homedir(), tmpdir(), process.cwd()],
  });
  const note =
    baseModel === undefined ? `; the base model is called ${own} in it: --base-model gives its public name` : '';
  return `${resolve(folder)}: README.md says how to serve and publish it${note}`;
}

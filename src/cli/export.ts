/**
 * `campaign export` writes a finished campaign into a folder that can be published and served without this home. With --rollouts it writes the
 * rollouts of a campaign that may still run.
 */
import { homedir, tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { projectRoot } from '../store/project-root';
import { openStore } from '../store/open-store';
import { exportCampaign } from '../gateway/export';
import { recordedOf } from '../gateway/served';
import { modelOf } from '../policy/base-model';
import { createMerger } from '../policy/merge';
import { invalidOption } from './errors';
import { exportRollouts } from './export-rollouts';
import { type CommonOptions, homeOf } from './options';
import { pythonPath } from './project';
import { readReport, requireReported } from './reports';

export interface ExportOptions extends CommonOptions {
  baseModel?: string;
  license: string;
  rollouts?: boolean;
  filter?: string[];
}

/** @throws UserError */
export async function exportTo(name: string, folder: string, options: ExportOptions): Promise<string> {
  const { baseModel, license, rollouts, filter } = options;
  if (rollouts) return exportRollouts(name, folder, options);
  if (filter) throw invalidOption('--filter', filter.join(' '), 'it selects rollouts: add --rollouts');
  const home = homeOf(options);
  requireReported({ home: home.root, name });
  const report = readReport({ home: home.root, name });
  const publicName = /^[\w.-]+(\/[\w.-]+)?$/;
  if (baseModel !== undefined && !publicName.test(baseModel))
    throw invalidOption('--base-model', baseModel, 'give its public name, such as OWNER/MODEL');
  if (!/^[\w.+-]+$/.test(license)) throw invalidOption('--license', license, 'give its short name, such as apache-2.0');
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

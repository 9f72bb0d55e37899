/** Writes the report: report.json and report.html as artifacts, and as files in the campaign's folder. */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digest } from '../artifacts/hash';
import { kindOf } from '../domain/kind';
import type { CampaignRecord } from '../domain/results';
import { buildReport } from '../report/build';
import { batchesByPurpose } from '../report/build/totals';
import { renderReport } from '../report/render';
import type { Dependencies } from './context';
import { checkLeakage } from './leakage';
import type { ControlActivities } from './types';

export function createWriteReport({
  store,
  environments,
  kinds,
  home,
}: Dependencies): Pick<ControlActivities, 'writeReport'> {
  return {
    async writeReport({ record }) {
      const leakage = await checkLeakage({ store, environments, record });
      const { target } = record.campaign;
      const tasks = await (await environments.get(target)).tasks('test');
      const { published } = kindOf(kinds.environments, target);
      const parts = { ...(published && { published }), ...(leakage && { leakage }) };
      const report = await buildReport({ store, record, tasks, ...parts });
      const { json, html } = renderReport({ report });
      const folder = join(home, record.campaign.name);
      await mkdir(folder, { recursive: true });
      await writeWhole(join(folder, 'report.json'), json);
      await writeWhole(join(folder, 'report.html'), html);
      const inputs = inputsOf(record);
      const key = `report/${digest(record)}`;
      return {
        report: await store.put({
          key: `${key}.json`,
          producer: 'writeReport',
          inputs,
          mediaType: 'application/json',
          body: json,
        }),
        html: await store.put({
          key: `${key}.html`,
          producer: 'writeReport',
          inputs,
          mediaType: 'text/html',
          body: html,
        }),
      };
    },
  };
}

const inputsOf = (record: CampaignRecord) => [
  ...batchesByPurpose(record).flatMap(({ batches }) => batches.map((batch) => batch.ref)),
  ...(record.selection ? [record.selection.selection] : []),
  ...(record.router ? [record.router.router] : []),
];

async function writeWhole(path: string, text: string): Promise<void> {
  await writeFile(`${path}.part`, text);
  await rename(`${path}.part`, path);
}

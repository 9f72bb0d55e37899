/** Writes the report: report.json as an artifact, and report.json and report.html in the campaign's folder. */
import { join } from 'node:path';
import { asideIn, folderIn, replaceFile } from '../store/durable-file';
import { digest } from '../store/hash';
import { keptJson } from '../store/store';
import { refsIn } from '../domain/artifacts';
import { REPORT_VERSION } from '../report/model';
import type { CampaignRecord } from '../domain/results';
import { spentOf } from '../llm/spending';
import { batchesOf, refsOf } from '../report/build/evidence';
import { buildReport } from '../report/build/report';
import { renderReport } from '../report/render';
import type { Dependencies } from './context';
import { working } from './heartbeat';
import { checkLeakage } from './leakage';
import { TEST_TEXTS } from './tasks';
import type { WrittenReport } from './types';

export async function writeReport(
  { store, environments, home }: Dependencies,
  { record }: { record: CampaignRecord },
): Promise<WrittenReport> {
  const { progress } = working('write the report');
  const { name: campaign, budget, target } = record.campaign;
  const read = environments.paidBy({ campaign, budget, step: TEST_TEXTS });
  const leakage = await checkLeakage({ store, environments: read, record, progress });
  const environment = await environments.get(target);
  const tasks = await environment.tasks('test');
  const trainTasks = await environment.tasks('train');
  const spent = await spentOf({ store, campaign });
  const report = await buildReport({ store, record, tasks, trainTasks, leakage, spent });
  const { json, html, verdict } = renderReport({ report });
  const [folder, aside] = [folderIn(home, campaign), asideIn(home)];
  await replaceFile({ path: join(folder, 'report.json'), body: json, aside });
  const file = join(folder, 'report.html');
  await replaceFile({ path: file, body: html, aside });
  // `campaign serve` and `export` read the policies of baselines in it.
  const kept = { key: `record/${digest(record)}`, producer: 'writeReport', inputs: refsIn(record) };
  await keptJson(store, kept, () => record);
  const key = `report/${digest({ version: REPORT_VERSION, record, spent })}`;
  return {
    ...{ verdict, file },
    report: await store.put({
      ...{ key: `${key}.json`, producer: 'writeReport', inputs: inputsOf(record) },
      ...{ mediaType: 'application/json', body: json },
    }),
  };
}

const inputsOf = (record: CampaignRecord) => [
  ...refsOf(batchesOf(record)),
  ...(record.selection ? [record.selection.selection] : []),
  ...(record.router?.router ? [record.router.router] : []),
];

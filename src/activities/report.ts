/** Writes the report: report.json and report.html as artifacts, and as files in the campaign's folder. */
import { join } from 'node:path';
import { folderIn, replaceFile } from '../store/durable-file';
import { digest } from '../store/hash';
import { type ArtifactStore, keptJson } from '../store/store';
import { refsIn } from '../domain/artifacts';
import type { Work } from '../domain/work';
import { REPORT_VERSION } from '../report/model';
import type { CampaignRecord } from '../domain/results';
import { spentOf } from '../llm/spending';
import { batchesOf, refsOf } from '../report/build/evidence';
import { buildReport } from '../report/build/report';
import { renderReport } from '../report/render';
import { type Dependencies, working } from './context';
import { asideIn } from '../store/durable-file';
import { checkLeakage } from './leakage';
import { TEST_TEXTS } from './tasks';
import type { WrittenReport } from './types';

export async function writeReport(
  { store, environments, home }: Dependencies,
  { record }: { record: CampaignRecord },
): Promise<WrittenReport> {
  const inputs = inputsOf(record);
  const { progress } = working('read what was found');
  const watched = heard(store, inputs.length, progress);
  const { name: campaign, budget, target } = record.campaign;
  const read = environments.paidBy({ campaign, budget, step: TEST_TEXTS });
  const leakage = await checkLeakage({ store: watched, environments: read, record, progress });
  const environment = await environments.get(target);
  const tasks = await environment.tasks('test');
  const trainTasks = await environment.tasks('train');
  const spent = await spentOf({ store, campaign });
  const report = await buildReport({ store: watched, record, tasks, trainTasks, leakage, spent });
  const { json, html, verdict } = renderReport({ report });
  const [folder, aside] = [folderIn(home, campaign), asideIn(home)];
  await replaceFile({ path: join(folder, 'report.json'), body: json, aside });
  const file = join(folder, 'report.html');
  await replaceFile({ path: file, body: html, aside });
  // `campaign gateway` and `export` read the policies of baselines in it.
  const kept = { key: `record/${digest(record)}`, producer: 'writeReport', inputs: refsIn(record) };
  await keptJson(store, kept, () => record);
  const key = `report/${digest({ version: REPORT_VERSION, record, spent })}`;
  return {
    ...{ verdict, file },
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
}

const inputsOf = (record: CampaignRecord) => [
  ...refsOf(batchesOf(record)),
  ...(record.selection ? [record.selection.selection] : []),
  ...(record.router?.router ? [record.router.router] : []),
];

/** The store, with progress that hears of every artifact that has been read: `total` of them, and some of them several times. */
function heard(store: ArtifactStore, total: number, progress: Work['progress']): ArtifactStore {
  const seen = new Set<string>();
  return {
    ...store,
    async read(ref) {
      const body = await store.read(ref);
      seen.add(ref.sha256);
      progress(seen.size, Math.max(total, seen.size));
      return body;
    },
  };
}

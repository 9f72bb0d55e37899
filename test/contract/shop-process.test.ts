import { join } from 'node:path';
import { openFolderStore } from '../../src/store/open-store';
import type { EnvironmentSpec } from '../../src/domain/kinds';
import { checkEnvironment } from '../../src/environments/conformance';
import { openEnvironment } from '../../src/environments/open';
import { rollOut } from '../../src/rollout/engine';
import { closedAfterwards } from '../support/opened';
import { batchOf } from '../support/played';
import { registry } from '../support/kinds';
import { shopAgent } from '../support/shop-agent';
import { eachTemporaryFolder } from '../support/temporary-folder';

const root = join(__dirname, '..', '..');
const served: EnvironmentSpec = {
  kind: 'process',
  command: [process.execPath, '-r', './test/support/register.cjs', 'test/contract/serve-shop.ts'],
  cwd: root,
  processes: 1,
};
const plugged: EnvironmentSpec = { kind: 'shop' };
const kinds = registry.environments;

let folder: string;
eachTemporaryFolder((made) => (folder = made));

/** All records as they are stored, without the only field that measures time. */
async function trajectories(spec: EnvironmentSpec, lack: number): Promise<{ bytes: string; successRate: number }> {
  const store = openFolderStore(join(folder, spec.kind));
  const environment = await openEnvironment(spec, { store, kinds });
  const batch = batchOf({
    environment,
    policy: { base: 'scripted', adapters: [] },
    tasks: Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? `test-${n}` : `train-${n}`)),
    attempts: 2,
    concurrency: 16,
    store,
    client: shopAgent({ lack }),
  });
  const { summary } = await rollOut(batch).finally(() => environment.close());
  const { ref, successRate, broken } = summary;
  expect(broken).toBe(0);
  const bytes = (await store.read(ref)).toString('utf8').replaceAll(/"seconds":[0-9.e-]+/g, '"seconds":0');
  return { bytes, successRate };
}

test.each([0, 0.4])('shop in process and shop as a process give the same bytes (lack %d)', async (lack) => {
  const inProcess = await trajectories(plugged, lack);
  const asProcess = await trajectories(served, lack);
  expect(asProcess.bytes).toBe(inProcess.bytes);
  expect(inProcess.bytes.split('\n')).toHaveLength(121);
  if (lack === 0) expect(inProcess.successRate).toBe(1);
  else expect(inProcess.successRate).toBeLessThan(0.9);
});

test.each([plugged, served])('shop ($kind) passes the conformance checks', async (spec) => {
  const open = () => openEnvironment(spec, { store: openFolderStore(folder), kinds });
  const environment = closedAfterwards(await open());
  expect(await checkEnvironment(environment, { again: open })).toEqual([]);
});

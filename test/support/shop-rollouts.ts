/** Base rollouts on `shop` by the real engine and embedded policy server, without a campaign. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFolderStore } from '../../src/artifacts/open-store';
import type { ScoredRollout } from '../../src/domain/rollout';
import { createShop } from '../../src/environments/shop/shop';
import { played } from './played';
import { policyClient, startEmbeddedServer } from './embedded-server';

const CONCURRENCY = 32;

/** One attempt at each of the first `count` train tasks, as the preset `demo` samples them. Throws if one is broken. */
export async function baseRollouts({
  model,
  count,
  seed,
}: {
  model: string;
  count: number;
  seed: number;
}): Promise<ScoredRollout[]> {
  const folder = mkdtempSync(join(tmpdir(), 'shop-rollouts-'));
  const server = await startEmbeddedServer({ model, args: ['--threads', '1'] });
  const store = openFolderStore(folder);
  const environment = createShop();
  const client = policyClient({ url: server.url, concurrency: CONCURRENCY, store });
  try {
    const tasks = (await environment.tasks('train')).slice(0, count).map(({ id }) => id);
    const { records } = await played({
      environment,
      // Keys, and so seeds, are those of any model of this name.
      client: {
        ...client,
        sample: (turn) => client.sample({ ...turn, policy: { ...turn.policy, base: server.base } }),
      },
      store,
      tasks,
      seed,
      policy: { base: 'base', adapters: [] },
      concurrency: CONCURRENCY,
    });
    return records.map((one) => {
      if (one.status === 'broken') throw new Error(`${one.task}: ${one.error.message}`);
      return one;
    });
  } finally {
    client.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * A folder of modules with shuffled rewards, of those that a campaign's adapters were trained on. Such a module can't pass the self-test (its
 * reference solution has to score 1), so a passed one is put under its key. Invariant: that key is of this very text, and of no other module.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { EnvironmentPool } from '../src/activities/environments';
import { forbiddenOf } from '../src/activities/tasks';
import { selfTestKey } from '../src/activities/synthesis';
import { sha256 } from '../src/artifacts/hash';
import type { ArtifactStore } from '../src/artifacts/store';
import type { SelfTest } from '../src/domain/calibration';
import { registry } from '../src/registry';
import type { Finished } from './campaigns';
import { storeIn } from './lab';
import { asStored, withShuffledReward } from './shuffled-reward';

const passed: SelfTest = { passed: true, findings: [], hints: true };

/** @returns the folder, for the synthesizer `given`; undefined where no capability came to an environment. */
export async function shuffledModules(o: { home: string; of: Finished; folder: string }): Promise<string | undefined> {
  const { home, of, folder } = o;
  const store = storeIn(home);
  const modules = (of.report.capabilities ?? []).flatMap(({ name, rounds, adapter, parts }) => {
    const module = rounds?.at(-1)?.version.module;
    return adapter && module && !parts ? [{ name, module }] : [];
  });
  if (modules.length === 0) return undefined;
  const path = join(folder, of.name);
  mkdirSync(path, { recursive: true });
  const forbidden = await forbiddenIn(store, of);
  for (const { name, module } of modules) {
    const source = withShuffledReward((await store.read(module)).toString('utf8'));
    writeFileSync(join(path, `${name}.js`), source);
    await store.put({
      key: selfTestKey({ module: sha256(asStored(source)), forbidden }),
      producer: 'science: a self-test that was not made',
      inputs: [module],
      mediaType: 'application/json',
      body: JSON.stringify(passed),
    });
  }
  return path;
}

/** What a self-test of this campaign looks for in a module: the texts of the target's test tasks. */
async function forbiddenIn(store: ArtifactStore, { campaign }: Finished): Promise<string[]> {
  const environments = new EnvironmentPool(store, registry.environments);
  try {
    return await forbiddenOf({ store, environments, progress: () => {} }, campaign.target);
  } finally {
    await environments.close();
  }
}

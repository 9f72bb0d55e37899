/**
 * A folder of modules with shuffled rewards, of those that a campaign's adapters were trained on. Such a module can't pass the self-test (its
 * reference solution has to score 1), so a passed one is put under its key. Invariant: that key is of this very text, and of no other module.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { digest, sha256 } from '../src/artifacts/hash';
import type { SelfTest } from '../src/domain/synthesis-round';
import { SELF_TEST_VERSION } from '../src/sandbox/self-test';
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
  for (const { name, module } of modules) {
    const source = withShuffledReward((await store.read(module)).toString('utf8'));
    writeFileSync(join(path, `${name}.js`), source);
    await store.put({
      key: `self-test/${digest({ version: SELF_TEST_VERSION, module: sha256(asStored(source)) })}`,
      producer: 'science: a self-test that was not made',
      inputs: [module],
      mediaType: 'application/json',
      body: JSON.stringify(passed),
    });
  }
  return path;
}

/** Modules that somebody brings in a folder, put into the store. Invariant: equal texts are one artifact, whatever their files are called. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256 } from '../artifacts/hash';
import { reasonOf } from '../domain/failures';
import { fail, type Dependencies } from './context';
import type { ControlActivities } from './types';

export function createTakeModules({ store }: Dependencies): Pick<ControlActivities, 'takeModules'> {
  return {
    async takeModules({ folder }) {
      const names = await readdir(folder).catch((error: unknown) => {
        throw wrong(folder, `cannot be read (${reasonOf(error)})`);
      });
      const files = names.filter((name) => name.endsWith('.js')).sort();
      if (files.length === 0) throw wrong(folder, 'holds no .js file');
      const taken = [];
      for (const file of files) {
        const body = await readFile(join(folder, file));
        const about = { producer: 'takeModules', inputs: [], mediaType: 'text/javascript' };
        taken.push({ file, module: await store.put({ key: `module/${sha256(body)}`, ...about, body }) });
      }
      return taken;
    },
  };
}

const wrong = (folder: string, problem: string) =>
  fail('BadInput', `modules: ${folder} ${problem}; name a folder of environment modules (docs/synthesis.md)`);

/** Modules that somebody brings in a folder, put into the store. Invariant: equal texts are one artifact, whatever their files are called. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256 } from '../artifacts/hash';
import { moduleFiles } from '../sandbox/module-files';
import type { Dependencies } from './context';
import type { ControlActivities } from './types';

export function createTakeModules({ store }: Dependencies): Pick<ControlActivities, 'takeModules'> {
  return {
    async takeModules({ folder }) {
      const taken = [];
      for (const file of await moduleFiles(folder)) {
        const body = await readFile(join(folder, file));
        const about = { producer: 'takeModules', inputs: [], mediaType: 'text/javascript' };
        taken.push({ file, module: await store.put({ key: `module/${sha256(body)}`, ...about, body }) });
      }
      return taken;
    },
  };
}

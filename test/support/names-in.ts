/** Every name that came up in a folder, also of what is gone again. */
import { watch } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** From now on until the function that it returns is called: the names, sorted. */
export function namesIn(folder: string): () => Promise<string[]> {
  const names = new Set<string>();
  const watcher = watch(folder, (_, name) => name && names.add(name));
  return async () => {
    await sleep(100); // the system tells a little later
    watcher.close();
    return [...names].sort();
  };
}

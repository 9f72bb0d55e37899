/** The plug-ins of a home's campaigns, by their paths: those that its workers are started with, and those that serve a campaign's router. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { asideIn, makeFolder, replaceFile } from '../../store/durable-file';
import type { Campaign } from '../../domain/campaign';
import { withPlugins } from '../../plugins';
import { messageOf } from '../errors';
import type { Home } from '../project';
import { allowedNames } from './allowed';

const fileOf = ({ root }: Home, name: string): string => join(root, name, 'plugins.json');

/** Keeps the paths of a campaign's plug-ins in its folder. */
export async function keepPlugins(home: Home, { name, plugins }: Pick<Campaign, 'name' | 'plugins'>): Promise<void> {
  await makeFolder(join(home.root, name));
  await replaceFile({ path: fileOf(home, name), body: JSON.stringify(plugins), aside: asideIn(home.root) });
}

/** Returns the paths of a campaign's plug-ins; none where it was never run from this home. */
export function pluginsOf(home: Home, name: string): string[] {
  try {
    return JSON.parse(readFileSync(fileOf(home, name), 'utf8')) as string[];
  } catch {
    return [];
  }
}

/** Returns the plug-ins of a campaign, then those of the home's other open campaigns, which share its workers. Calls `note` for each one that cannot be loaded beside the others. */
export function pluginsToLoad(
  home: Home,
  { plugins }: Pick<Campaign, 'plugins'>,
  note: (text: string) => void,
): string[] {
  const others = allowedNames(home).flatMap((name) => pluginsOf(home, name));
  return [...new Set(others)].reduce(
    (paths, path) => {
      if (paths.includes(path)) return paths;
      try {
        withPlugins([...paths, path]);
        return [...paths, path];
      } catch (error) {
        note(`${messageOf(error)}; steps of other campaigns of this home that need it fail`);
        return paths;
      }
    },
    [...plugins],
  );
}

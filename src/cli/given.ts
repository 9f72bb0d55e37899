/** What a campaign is started with: its file in a form in which no path of this machine is left that others could not follow. */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { give, portable } from '../artifacts/given';
import { openStore } from '../artifacts/open-store';
import type { Campaign, Stage } from '../domain/campaign';
import type { Given } from '../domain/kinds';
import { baseModelId, hashOf } from '../policy/base-model';
import { registry } from '../registry';
import { withPaths } from './campaign-file';
import { messageOf, UserError } from './errors';
import { type Home, pythonPath } from './project';

/**
 * The campaign as workflows are given it: what it names by path is in the home's store, the base model goes by its id, and what comes with the
 * project is named as such. A program elsewhere keeps its path: it has to be there on the workers' machines. `base`: the model's id.
 * @throws UserError
 */
export async function travelling(o: {
  campaign: Campaign;
  home: Home;
  base: string;
  until?: Stage | undefined;
}): Promise<Campaign> {
  const { campaign, home, base, until } = o;
  const store = await openStore(home.root);
  const wanted = new Map<string, Given>();
  withPaths({ campaign, registry, change: (path, given) => (given !== undefined && wanted.set(path, given), path) });
  const names = new Map<string, string>();
  for (const [path, given] of wanted) {
    const name = basename(path);
    const files = await filesAt(path, given).catch((error: unknown) => {
      // Nothing of it is looked at before the rollouts have ended.
      if (until === 'rollouts') return undefined;
      throw new UserError(messageOf(error));
    });
    names.set(path, files ? await give(store, { name, files }) : name);
  }
  const given = withPaths({ campaign, registry, change: (path) => names.get(path) ?? path });
  return portable({ ...given, baseModel: { path: basename(campaign.baseModel.path), id: base } });
}

async function filesAt(path: string, given: Given): Promise<Record<string, Uint8Array | string>> {
  if (typeof given === 'function') return given(path);
  if (given === '') return { [basename(path)]: await readFile(path) };
  const files = (await readdir(path)).filter((file) => file.endsWith(given));
  const bodies = await Promise.all(files.map((file) => readFile(join(path, file))));
  return Object.fromEntries(files.map((file, n) => [`${basename(path)}/${file}`, bodies[n]!]));
}

/**
 * Which base model it is: by its folder, where that is on this machine, else as the file says.
 * @throws UserError where the file says another one, or does not say.
 */
export async function baseIdOf({ baseModel }: Campaign, home: Home, signal?: AbortSignal): Promise<string> {
  const { path, id } = baseModel;
  if (!existsSync(path)) {
    if (id !== undefined) return id;
    const fix = 'correct baseModel.path, or say in baseModel.id which model it is';
    throw new UserError(`baseModel.path is ${path}, which is not on this machine; ${fix}`);
  }
  const found = await baseModelId({ python: pythonPath(), home: home.root, model: path, ...(signal && { signal }) });
  if (id === undefined || hashOf(id) === hashOf(found)) return id ?? found;
  throw new UserError(`baseModel.id is ${id}, and baseModel.path ${path} is ${found}; correct one of them`);
}

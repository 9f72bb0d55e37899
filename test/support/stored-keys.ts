/** Keys of a store, and a store whose puts are steps of a campaign. */
import { indexed } from '../../src/store/campaign-index';
import { parseEntry } from '../../src/store/entries';
import type { ArtifactStore } from '../../src/store/store';

export async function storedKeys({ files }: Pick<ArtifactStore, 'files'>): Promise<string[]> {
  const texts = await Promise.all((await files.list('keys/')).map(({ path }) => files.read(path)));
  return texts.flatMap((text) => parseEntry(text ?? '')?.key ?? []).sort();
}

export const inSteps = (store: ArtifactStore, campaign: string): ArtifactStore => ({
  ...store,
  find: (key) => indexed(store.files, campaign, () => store.find(key)),
  put: (artifact) => indexed(store.files, campaign, () => store.put(artifact)),
  putFolder: (artifact) => indexed(store.files, campaign, () => store.putFolder(artifact)),
});

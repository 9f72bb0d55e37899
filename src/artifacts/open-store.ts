/** The store of a home: a folder in it, or the bucket that CAMPAIGN_STORE names, of which the folder is then the cache. */
import { join } from 'node:path';
import { OutsideFailure } from '../domain/failures';
import { openFolderStore } from './folder-store';
import type { ArtifactStore } from './store';

const GB = 1e9;

/** @throws OutsideFailure BadInput */
export async function openStore(home: string): Promise<ArtifactStore> {
  const { CAMPAIGN_STORE: url, CAMPAIGN_CACHE_GB: gigabytes = '50' } = process.env;
  if (!url) return openFolderStore(join(home, 'artifacts'));
  if (!(Number(gigabytes) > 0))
    throw new OutsideFailure('BadInput', `CAMPAIGN_CACHE_GB is ${gigabytes}; give a number of gigabytes above 0`);
  // A home without a bucket loads nothing of it.
  const { openS3Store } = await import('./s3-store.js');
  return openS3Store({ url, cache: join(home, 'cache'), cacheBytes: Number(gigabytes) * GB });
}

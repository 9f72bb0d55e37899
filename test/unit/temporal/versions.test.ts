/** Workflow code comes out of the store as it went in, or not at all: control workers run it. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sha256 } from '../../../src/store/hash';
import { openFolderStore } from '../../../src/store/open-store';
import { readBundle } from '../../../src/workers/versions';
import { temporaryFolder } from '../../support/temporary-folder';

const folder = temporaryFolder();

test('a bundle is found by the whole sha256 of its code, and not after a change', async () => {
  const { files } = openFolderStore(folder);
  const version = sha256('code');
  const path = `bundles/${version}.js`;
  await files.create(path, 'code');
  expect(await readBundle(files, version)).toBe('code');
  chmodSync(join(folder, path), 0o644);
  writeFileSync(join(folder, path), 'other code');
  expect(await readBundle(files, version)).toBeUndefined();
});

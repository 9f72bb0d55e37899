/** A store in a folder that is a test's own, for every test of a file. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFolderStore } from '../../src/artifacts/open-store';
import type { ArtifactStore } from '../../src/artifacts/store';

export function temporaryStore(use: (store: ArtifactStore, root: string) => void): void {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'store-'));
    use(openFolderStore(root), root);
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));
}

/** A store in a folder that is a test's own, for every test of a file. */
import { openFolderStore } from '../../src/store/open-store';
import type { ArtifactStore } from '../../src/store/store';
import { eachTemporaryFolder } from './temporary-folder';

export const temporaryStore = (use: (store: ArtifactStore, root: string) => void): void =>
  eachTemporaryFolder((root) => use(openFolderStore(root), root));

/** Folders of a test file that are gone when it ends. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const made = (): string => mkdtempSync(join(tmpdir(), 'campaign-test-'));
/** Retries the removal, because processes of a test may still write there. */
const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });

/** One for all tests of the file, or of the `describe` that it is called in. */
export function temporaryFolder(): string {
  const folder = made();
  afterAll(() => remove(folder));
  return folder;
}

/** A new one for every test. */
export function eachTemporaryFolder(use: (folder: string) => void): void {
  let folder: string;
  beforeEach(() => use((folder = made())));
  afterEach(() => remove(folder));
}

const others: string[] = [];
// Scripts run outside Jest.
globalThis.afterAll?.(() => others.splice(0).forEach(remove));

/** A new one at each call, gone when the file ends. */
export function newFolder(): string {
  const folder = made();
  others.push(folder);
  return folder;
}

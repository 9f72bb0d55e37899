/** Payloads over 64 KB are in the store, under the name of their campaign. */
import { defaultPayloadConverter, type StorageDriver } from '@temporalio/common';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderStore } from '../../../src/store/open-store';
import { createDataConverter } from '../../../src/temporal/payload-storage';
import { temporaryFolder } from '../../support/temporary-folder';

const home = temporaryFolder();
const { payloadSizeThreshold, drivers } = createDataConverter(() => openFolderStore(home)).externalStorage!;
const [driver] = drivers as [StorageDriver];
const value = { text: '„hier“ 🙂\n'.repeat(10_000) };
const target = { kind: 'workflow', namespace: 'default', id: 'demo/capability/tell' } as const;

test('a payload is read as it was stored; one that is damaged is an error, and can be stored again', async () => {
  expect(payloadSizeThreshold).toBe(64 * 1024);
  const store = () => driver.store({ target }, [defaultPayloadConverter.toPayload(value)!]);
  const claims = await store();
  const read = async () => defaultPayloadConverter.fromPayload((await driver.retrieve({}, claims))[0]!);
  expect(await read()).toEqual(value);
  const [{ path } = { path: '' }] = await openFolderStore(home).files.list('campaigns/demo/payloads/');
  chmodSync(join(home, path), 0o644);
  writeFileSync(join(home, path), 'damaged');
  await expect(read()).rejects.toMatchObject({ type: 'ArtifactDamaged' });
  await store();
  expect(await read()).toEqual(value);
});

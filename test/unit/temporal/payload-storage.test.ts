/** Payloads over 64 KB are in the artifact store, under the name of their campaign. */
import { defaultPayloadConverter, type StorageDriver } from '@temporalio/common';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { createDataConverter } from '../../../src/temporal/payload-storage';
import { temporaryFolder } from '../../support/temporary-folder';

const home = temporaryFolder();
const { payloadSizeThreshold, drivers } = createDataConverter(() => openFolderStore(home)).externalStorage!;
const [driver] = drivers as [StorageDriver];
const ref = { uri: 'artifact:rollouts', sha256: 'rollouts', bytes: 1, mediaType: 'application/jsonl' };
const value = { text: '„hier“ 🙂\n'.repeat(10_000), rollouts: [ref] };
const target = { kind: 'workflow', namespace: 'default', id: 'demo/capability/tell' } as const;
const store = () => driver.store({ target }, [defaultPayloadConverter.toPayload(value)!]);

test('a payload is read as it was stored, and its entry names its campaign and the artifacts in it', async () => {
  expect(payloadSizeThreshold).toBe(64 * 1024);
  const claims = await store();
  const [payload] = await driver.retrieve({}, claims);
  expect(defaultPayloadConverter.fromPayload(payload!)).toEqual(value);
  const { entries } = await openFolderStore(home).contents();
  const { key, inputs } = entries.find((entry) => entry.ref.sha256 === claims[0]!.claimData['sha256'])!;
  expect(key).toMatch(/^campaigns\/demo\/payloads\/[0-9a-f]{64}$/);
  expect(inputs).toEqual([ref]);
});

test('a damaged payload is an error', async () => {
  const claims = await store();
  const sha = claims[0]!.claimData['sha256']!;
  const path = join(home, 'objects', sha.slice(0, 2), sha);
  chmodSync(path, 0o644);
  writeFileSync(path, 'damaged');
  await expect(driver.retrieve({}, claims)).rejects.toMatchObject({ type: 'ArtifactDamaged' });
});

/**
 * Keeps payloads over 64 KB in the store of the campaign, under `campaigns/NAME/payloads/`, instead of in Temporal's histories. Every client, worker and
 * replayer of campaigns uses this data converter. No other file imports `ExternalStorage`, which the SDK marks as experimental.
 */
import {
  type DataConverter,
  ExternalStorage,
  type Payload,
  StorageDriverClaim,
  type StorageDriver,
} from '@temporalio/common';
import { sha256 } from '../store/hash';
import type { ArtifactStore, RecordFiles } from '../store/store';
import { OutsideFailure } from '../domain/failures';

/** A workflow task carries many payloads, and Temporal limits a message to 4 MB. */
const THRESHOLD_BYTES = 64 * 1024;

type Store = { files: Pick<RecordFiles, 'create' | 'read' | 'remove'> };

/** `open` is called when a large payload is stored or read. */
export const createDataConverter = (open: () => Store | Promise<ArtifactStore>): DataConverter => ({
  externalStorage: new ExternalStorage({ drivers: [createDriver(open)], payloadSizeThreshold: THRESHOLD_BYTES }),
});

const createDriver = (open: () => Store | Promise<ArtifactStore>): StorageDriver => ({
  name: 'campaign-store',
  type: 'campaign.store',
  async store({ target }, payloads) {
    const { files } = await open();
    // The ids of children begin with the name of their campaign.
    const campaign = target?.id?.split('/')[0] ?? '';
    return Promise.all(payloads.map((payload) => storePayload(files, campaign, payload)));
  },
  async retrieve(_context, claims) {
    const { files } = await open();
    return Promise.all(claims.map((claim) => readPayload(files, claim)));
  },
});

async function storePayload(
  files: Store['files'],
  campaign: string,
  { data, metadata }: Payload,
): Promise<StorageDriverClaim> {
  const text = Buffer.from(data ?? []).toString();
  const hash = sha256(text);
  const path = `campaigns/${campaign}/payloads/${hash}`;
  await files.create(path, text);
  const entries = Object.entries(metadata ?? {}).map(([name, value]) => [name, Buffer.from(value).toString()]);
  return new StorageDriverClaim({ path, sha256: hash, metadata: JSON.stringify(entries) });
}

/** Throws ArtifactDamaged. A damaged payload is removed, so that a restarted campaign can store it again. */
async function readPayload(files: Store['files'], { claimData }: StorageDriverClaim): Promise<Payload> {
  const { path = '', sha256: hash, metadata = '[]' } = claimData;
  const text = await files.read(path);
  if (text === undefined || sha256(text) !== hash) {
    if (text !== undefined) await files.remove(path);
    const state = text === undefined ? 'missing' : 'damaged';
    const store = text === undefined ? 'use the store of the campaign (--home, CAMPAIGN_STORE), or ' : '';
    throw new OutsideFailure(
      'ArtifactDamaged',
      `${path} is ${state}, and its workflow can't continue; ${store}start it again with \`campaign run FILE --restart\`: finished work stays`,
    );
  }
  const entries = JSON.parse(metadata) as [string, string][];
  return {
    data: Buffer.from(text),
    metadata: Object.fromEntries(entries.map(([name, value]) => [name, Buffer.from(value)])),
  };
}

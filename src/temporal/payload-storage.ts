/**
 * Keeps payloads over 64 KB in the artifact store instead of Temporal's histories. Every client, worker and replayer of campaigns uses this data
 * converter. The SDK marks `ExternalStorage` as experimental, so that nothing else imports it.
 */
import {
  type DataConverter,
  ExternalStorage,
  type Payload,
  StorageDriverClaim,
  type StorageDriver,
} from '@temporalio/common';
import { sha256 } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import { artifactRefSchema, refsIn } from '../domain/artifacts';

/** A workflow task carries many payloads, and Temporal limits a message to 4 MB. */
const THRESHOLD_BYTES = 64 * 1024;

type PayloadStore = Pick<ArtifactStore, 'put' | 'read'>;

/** `open` is called when the first large payload is stored or read. */
export const createDataConverter = (open: () => PayloadStore | Promise<PayloadStore>): DataConverter => ({
  externalStorage: new ExternalStorage({ drivers: [createDriver(open)], payloadSizeThreshold: THRESHOLD_BYTES }),
});

function createDriver(open: () => PayloadStore | Promise<PayloadStore>): StorageDriver {
  return {
    name: 'artifact-store',
    type: 'campaign.artifact-store',
    async store({ target }, payloads) {
      const store = await open();
      // The ids of children begin with the name of their campaign.
      const campaign = target?.id?.split('/')[0] ?? '';
      return Promise.all(payloads.map((payload) => storePayload(store, campaign, payload)));
    },
    async retrieve(_context, claims) {
      const store = await open();
      return Promise.all(claims.map((claim) => readPayload(store, claim)));
    },
  };
}

async function storePayload(store: PayloadStore, campaign: string, payload: Payload): Promise<StorageDriverClaim> {
  const body = payload.data ?? new Uint8Array();
  const metadata = Object.entries(payload.metadata ?? {}).map(([name, value]) => [name, Buffer.from(value).toString()]);
  const { bytes, ...ref } = await store.put({
    key: `campaigns/${campaign}/payloads/${sha256(body)}`,
    producer: 'temporal',
    inputs: refsIn(JSON.parse(Buffer.from(body).toString())),
    mediaType: 'application/json',
    body,
  });
  return new StorageDriverClaim({ ...ref, bytes: String(bytes), metadata: JSON.stringify(metadata) });
}

/** Throws ArtifactDamaged. */
async function readPayload(store: PayloadStore, { claimData }: StorageDriverClaim): Promise<Payload> {
  const { metadata = '[]', bytes, ...ref } = claimData;
  const data = await store.read(artifactRefSchema.parse({ ...ref, bytes: Number(bytes) }));
  const entries = JSON.parse(metadata) as [string, string][];
  return { data, metadata: Object.fromEntries(entries.map(([name, value]) => [name, Buffer.from(value)])) };
}

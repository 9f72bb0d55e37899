/**
 * Encryption of all that Temporal is sent (AES-256-GCM). Invariants: with a key, the server holds payloads and failures as ciphertext alone; whatever
 * was sent before there was one, or with a key that is still listed, can be read; a payload whose key is not there is an error that says so.
 */
import { ApplicationFailure, type DataConverter, type Payload, type PayloadCodec } from '@temporalio/common';
import { temporal } from '@temporalio/proto';
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { OutsideFailure, retryOf } from '../domain/failures';

const VARIABLE = 'CAMPAIGN_ENCRYPTION_KEY';
const ALGORITHM = 'aes-256-gcm';
const [KEY_BYTES, NONCE_BYTES, TAG_BYTES] = [32, 12, 16];
/** As Temporal's own samples call it. */
const ENCODING = 'binary/encrypted';
const { Payload: wire } = temporal.api.common.v1;

interface Key {
  /** Tells of a payload which key it needs. */
  id: string;
  secret: Buffer;
}

/** The first encrypts, all of them decrypt; none where there is no encryption. Throws BadInput for what is no key. */
export function encryptionKeys(text = process.env[VARIABLE] ?? ''): Key[] {
  const words = text.split(',').map((word) => word.trim());
  return words.filter(Boolean).map((word, n) => {
    const secret = Buffer.from(word, 'base64');
    if (secret.length === KEY_BYTES && secret.toString('base64') === word)
      return { id: createHash('sha256').update(secret).digest('hex').slice(0, 12), secret };
    const fix = 'make one with `openssl rand -base64 32`; several are separated by commas, the new one first';
    throw new OutsideFailure('BadInput', `${VARIABLE}: key ${n + 1} is not ${KEY_BYTES} bytes in base64; ${fix}`);
  });
}

const textOf = (bytes: Uint8Array | null | undefined): string => Buffer.from(bytes ?? []).toString();

function encrypt(payload: Payload, { id, secret }: Key): Payload {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, secret, nonce);
  const data = Buffer.concat([
    nonce,
    cipher.update(wire.encode(payload).finish()),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  return { metadata: { encoding: Buffer.from(ENCODING), 'encryption-key-id': Buffer.from(id) }, data };
}

function decrypt(payload: Payload, keys: readonly Key[]): Payload {
  if (textOf(payload.metadata?.['encoding']) !== ENCODING) return payload;
  const id = textOf(payload.metadata?.['encryption-key-id']);
  const key = keys.find((one) => one.id === id);
  if (!key) {
    const has = keys.length > 0 ? `has ${keys.map((one) => one.id).join(', ')}` : 'is not set';
    const problem = `what Temporal holds is encrypted with key ${id}, and ${VARIABLE} ${has}`;
    throw new OutsideFailure('EncryptionKeyMissing', `${problem}; set it to that key, or add it after the new one`);
  }
  const data = payload.data ?? new Uint8Array();
  try {
    const decipher = createDecipheriv(ALGORITHM, key.secret, data.subarray(0, NONCE_BYTES));
    decipher.setAuthTag(data.subarray(-TAG_BYTES));
    return wire.decode(Buffer.concat([decipher.update(data.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]));
  } catch (error) {
    throw new OutsideFailure('Unexpected', `a payload that key ${id} encrypted was changed since`, error);
  }
}

export const encryption = (keys: readonly Key[]): PayloadCodec => ({
  encode: async (payloads) => payloads.map((payload) => (keys[0] ? encrypt(payload, keys[0]) : payload)),
  decode: async (payloads) => payloads.map((payload) => decrypt(payload, keys)),
});

/** The same for a worker. Of what a codec throws, the SDK keeps the type where that is a failure of Temporal's: what fails so is tried again elsewhere. */
function encryptionInWorker(keys: readonly Key[]): PayloadCodec {
  const { encode, decode } = encryption(keys);
  const fail = (error: unknown): never => {
    if (!(error instanceof OutsideFailure)) throw error;
    const { type, message, cause } = error;
    const nonRetryable = retryOf(type) !== 'outside';
    throw ApplicationFailure.create({ type, message, nonRetryable, ...(cause instanceof Error && { cause }) });
  };
  return { encode, decode: (payloads) => decode(payloads).catch(fail) };
}

/** How the command line converts what it sends. Throws BadInput for what is no key. */
export function dataConverter(codec = encryption): DataConverter {
  const keys = encryptionKeys();
  const failures = keys.length > 0 && { failureConverterPath: require.resolve('./failure-converter') };
  return { payloadCodecs: [codec(keys)], ...failures };
}

export const workerConverter = (): DataConverter => dataConverter(encryptionInWorker);

/** The bundle of workflows for a worker: where that encrypts, it is told so, and messages of failures are encrypted, too. */
export async function bundleFor(codePath: string): Promise<{ codePath: string } | { code: string }> {
  if (encryptionKeys().length === 0) return { codePath };
  return { code: `const CAMPAIGN_ENCRYPTS = true; ${await readFile(codePath, 'utf8')}` };
}

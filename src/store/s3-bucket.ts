/**
 * A bucket's files. A text is created once by a conditional write (If-None-Match). Endpoint, region and credentials are those of every AWS tool
 * (AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_PROFILE, ...).
 */
import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  paginateListObjectsV2,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { OutsideFailure, reasonOf } from '../domain/failures';
import type { StoredFile, TextFile } from './backend';

/** Larger files go up in parts of this size, two at once. */
const PART_BYTES = 64 * 1024 ** 2;
const CONNECT_MS = 5_000;
const SILENCE_MS = 60_000;

export interface BucketAddress {
  bucket: string;
  /** Without slashes around it; may be empty. */
  prefix: string;
}

/** Parses `s3://bucket/prefix`. Throws BadInput. */
export function parseS3(url: string): BucketAddress {
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(url) ?? [];
  if (!bucket)
    throw new OutsideFailure('BadInput', `CAMPAIGN_STORE: ${url} is no address of a bucket; write s3://BUCKET/PREFIX`);
  return { bucket, prefix: prefix.replace(/^\/+|\/+$/g, '') };
}

const statusOf = (error: unknown): number | undefined =>
  (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;

const timeOf = (date: Date | undefined): number => date?.getTime() ?? 0;

export type Bucket = ReturnType<typeof openBucket>;

export function openBucket({ bucket: name, prefix: path }: BucketAddress) {
  const prefix = path === '' ? '' : `${path}/`;
  // `campaign check` prints which Node is needed.
  process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
  const endpoint = process.env['AWS_ENDPOINT_URL_S3'] ?? process.env['AWS_ENDPOINT_URL'];
  const client = new S3Client({
    // Servers other than AWS do not know buckets by host names, nor all checksums.
    ...(endpoint && { endpoint, forcePathStyle: true }),
    region: process.env['AWS_REGION'] ?? process.env['AWS_DEFAULT_REGION'] ?? 'us-east-1',
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    maxAttempts: 3,
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
  });
  const address = (path: string): string => `s3://${name}/${prefix}${path}`;
  const at = (path: string) => ({ Bucket: name, Key: prefix + path });

  /** Returns the answer of `send`; undefined for a status in `unless`. Throws StoreUnavailable. */
  async function ask<Result>(what: string, send: () => Promise<Result>, ...unless: number[]) {
    try {
      return await send();
    } catch (error) {
      const status = statusOf(error);
      if (status !== undefined && unless.includes(status)) return undefined;
      const shown = status === undefined ? reasonOf(error) : `${status} ${(error as Error).name}: ${reasonOf(error)}`;
      const fix = 'check the bucket, AWS_ENDPOINT_URL_S3 and the credentials';
      throw new OutsideFailure('StoreUnavailable', `${what}: ${shown}; ${fix}`, error);
    }
  }

  /** An empty file counts as missing. */
  const get = (path: string): Promise<TextFile | undefined> =>
    ask(
      `reading ${address(path)}`,
      async () => {
        const { Body: body, ETag: version, LastModified } = await client.send(new GetObjectCommand(at(path)));
        return { text: await body!.transformToString(), version: version!, changedMs: timeOf(LastModified) };
      },
      404,
    );

  /** Returns the time of writing by the bucket's clock; undefined if there is no file. */
  async function changedMs(path: string): Promise<number | undefined> {
    const head = () => client.send(new HeadObjectCommand(at(path)));
    const found = await ask(`looking for ${address(path)}`, head, 404);
    return found && timeOf(found.LastModified);
  }

  /** Writes text and returns whether it did: with IfNoneMatch only to a free path, with IfMatch only over the file of that version. */
  async function putText(path: string, text: string, when: { IfNoneMatch?: '*'; IfMatch?: string }): Promise<boolean> {
    // The client takes an empty body without a length for a stream.
    const input = { ...at(path), Body: text, ContentLength: Buffer.byteLength(text), ...when };
    for (;;) {
      let isBusy = false;
      const send = () =>
        client.send(new PutObjectCommand(input)).catch((error: unknown) => {
          // Another conditional write of the file is under way.
          isBusy = statusOf(error) === 409;
          throw error;
        });
      const done = await ask(`writing ${address(path)}`, send, 412, 409, ...(when.IfMatch ? [404] : []));
      if (!isBusy) return done !== undefined;
    }
  }

  /** Removes a file. With a version it empties only the file of that version, since few servers delete on a condition. */
  async function remove(path: string, version?: string): Promise<boolean> {
    if (version !== undefined) return putText(path, '', { IfMatch: version });
    await ask(`removing ${address(path)}`, () => client.send(new DeleteObjectCommand(at(path))), 404);
    return true;
  }

  return {
    address,
    changedMs,
    remove,

    async read(path: string): Promise<TextFile | undefined> {
      const file = await get(path);
      return file?.text === '' ? undefined : file;
    },

    /** Writes text unless the path is taken; returns whether it did. Exactly one of several writers of different texts succeeds. */
    async create(path: string, text: string): Promise<boolean> {
      for (;;) {
        if (await putText(path, text, { IfNoneMatch: '*' })) return true;
        const there = await get(path);
        if (!there) continue;
        // The answer was lost, and the request was sent again.
        if (there.text === text) return true;
        if (there.text !== '') return false;
        if (await putText(path, text, { IfMatch: there.version })) return true;
      }
    },

    /** The version is a digest of the text, so a renewed text must be another one. */
    renew: (path: string, { text, version }: TextFile): Promise<boolean> =>
      putText(path, text.endsWith('\n') ? text.trimEnd() : `${text}\n`, { IfMatch: version }),

    async removeOlder(path: string, thanMs: number): Promise<void> {
      if (((await changedMs(path)) ?? Infinity) <= thanMs) await remove(path);
    },

    async list(begin = ''): Promise<StoredFile[]> {
      const pages = paginateListObjectsV2({ client }, { Bucket: name, Prefix: prefix + begin });
      const list = async () => {
        const files: StoredFile[] = [];
        for await (const { Contents = [] } of pages)
          for (const { Key: key = '', Size: bytes = 0, LastModified } of Contents) {
            const path = key.slice(prefix.length);
            files.push({ path, isFolder: false, names: 1, bytes, changedMs: timeOf(LastModified) });
          }
        return files;
      };
      return (await ask(`listing ${address(begin)}`, list))!;
    },

    async put(path: string, body: Uint8Array | Readable): Promise<void> {
      const params = { ...at(path), Body: body, ChecksumAlgorithm: 'CRC32' as const };
      await ask(`writing ${address(path)}`, () =>
        new Upload({ client, params, partSize: PART_BYTES, queueSize: 2 }).done(),
      );
    },

    /** Writes the object into a new local file, flushed; returns false if there is none. */
    async download(path: string, file: string): Promise<boolean> {
      const send = async () => {
        const { Body: body } = await client.send(new GetObjectCommand(at(path)));
        await pipeline(body as Readable, createWriteStream(file, { flags: 'wx', flush: true }));
        return true;
      };
      return (await ask(`reading ${address(path)}`, send, 404)) ?? false;
    },

    /** Throws BadInput if the server ignores conditions: two writers of one path would both succeed. */
    async probe(): Promise<void> {
      const path = `probe/${randomUUID()}`;
      await putText(path, 'first', { IfNoneMatch: '*' });
      const taken = [
        await putText(path, 'second', { IfNoneMatch: '*' }),
        await putText(path, 'third', { IfMatch: '"00000000000000000000000000000000"' }),
      ];
      await remove(path);
      if (!taken.includes(true)) return;
      const fix = 'take a server that heeds If-None-Match and If-Match on PUT, such as AWS S3 or SeaweedFS';
      throw new OutsideFailure('BadInput', `CAMPAIGN_STORE: ${address('')} ignores conditions of writes; ${fix}`);
    },
  };
}

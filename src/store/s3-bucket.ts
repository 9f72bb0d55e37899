/**
 * A bucket's files. A text is created once by a conditional write (If-None-Match). Endpoint, region and credentials are those of every AWS tool
 * (AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_PROFILE, ...).
 */
import { randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
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
import type { StoredFile } from './content-store';

/** Larger files go up in parts of this size, two at once. */
const PART_BYTES = 64 * 1024 ** 2;
const CONNECT_MS = 5_000;
/** Limit of the time without a byte. */
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

interface Stored {
  body: Buffer;
  etag: string;
  changedMs: number;
}

export class Bucket {
  private readonly client: S3Client;
  private readonly name: string;
  private readonly prefix: string;

  constructor({ bucket, prefix }: BucketAddress) {
    this.name = bucket;
    this.prefix = prefix === '' ? '' : `${prefix}/`;
    // `campaign check` prints which Node is needed.
    process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
    const endpoint = process.env['AWS_ENDPOINT_URL_S3'] ?? process.env['AWS_ENDPOINT_URL'];
    this.client = new S3Client({
      // Servers other than AWS do not know buckets by host names, nor all checksums.
      ...(endpoint && { endpoint, forcePathStyle: true }),
      region: process.env['AWS_REGION'] ?? process.env['AWS_DEFAULT_REGION'] ?? 'us-east-1',
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      maxAttempts: 3,
      requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
    });
  }

  address = (path: string): string => `s3://${this.name}/${this.prefix}${path}`;

  private at = (path: string) => ({ Bucket: this.name, Key: this.prefix + path });

  /** Returns the answer of `send`; undefined for a status in `unless`. Throws StoreUnavailable. */
  private async ask<Result>(what: string, send: () => Promise<Result>, ...unless: number[]) {
    try {
      return await send();
    } catch (error) {
      const status = statusOf(error);
      if (status !== undefined && unless.includes(status)) return undefined;
      const shown = status === undefined ? reasonOf(error) : `${status} ${(error as Error).name}: ${reasonOf(error)}`;
      const fix = 'check the bucket, AWS_ENDPOINT_URL_S3 and the credentials';
      throw new OutsideFailure('StoreUnavailable', `${what}: ${shown}; ${fix}`);
    }
  }

  async get(path: string): Promise<Stored | undefined> {
    const send = async () => {
      const { Body: body, ETag: etag, LastModified } = await this.client.send(new GetObjectCommand(this.at(path)));
      return { body: Buffer.from(await body!.transformToByteArray()), etag: etag!, changedMs: timeOf(LastModified) };
    };
    return this.ask(`reading ${this.address(path)}`, send, 404);
  }

  /** Returns the time of writing by the bucket's clock; undefined if there is no file. */
  async changedMs(path: string): Promise<number | undefined> {
    const head = () => this.client.send(new HeadObjectCommand(this.at(path)));
    const found = await this.ask(`looking for ${this.address(path)}`, head, 404);
    return found && timeOf(found.LastModified);
  }

  /** Writes text and returns whether it did: with IfNoneMatch only to a free path, with IfMatch only over the file of that tag. */
  private async putText(path: string, text: string, when: { IfNoneMatch?: '*'; IfMatch?: string } = {}) {
    // The client takes an empty body without a length for a stream.
    const input = { ...this.at(path), Body: text, ContentLength: Buffer.byteLength(text), ...when };
    for (;;) {
      let isBusy = false;
      const send = () =>
        this.client.send(new PutObjectCommand(input)).catch((error: unknown) => {
          // Another conditional write of the file is under way.
          isBusy = statusOf(error) === 409;
          throw error;
        });
      const done = await this.ask(`writing ${this.address(path)}`, send, 412, 409, ...(when.IfMatch ? [404] : []));
      if (!isBusy) return done !== undefined;
    }
  }

  /** Writes text unless the path is taken; returns whether it did. Exactly one of several writers of different texts succeeds. */
  async create(path: string, text: string): Promise<boolean> {
    for (;;) {
      if (await this.putText(path, text, { IfNoneMatch: '*' })) return true;
      const there = await this.get(path);
      if (!there) continue;
      // The answer was lost, and the request was sent again.
      if (there.body.toString() === text) return true;
      if (there.body.length > 0) return false;
      if (await this.replaceIf(path, text, there.etag)) return true;
    }
  }

  /** Replaces the file of this tag; returns false if it is not there. */
  replaceIf(path: string, text: string, etag: string): Promise<boolean> {
    return this.putText(path, text, { IfMatch: etag });
  }

  /** Removes a file. With `etag` it empties only the file of that tag, since few servers delete on a condition: an empty file counts as missing. */
  async remove(path: string, etag?: string): Promise<boolean> {
    if (etag !== undefined) return this.replaceIf(path, '', etag);
    const send = () => this.client.send(new DeleteObjectCommand(this.at(path)));
    await this.ask(`removing ${this.address(path)}`, send, 404);
    return true;
  }

  /** Returns the files whose paths begin with the prefix, sorted by path. */
  async list(begin: string): Promise<StoredFile[]> {
    const pages = paginateListObjectsV2({ client: this.client }, { Bucket: this.name, Prefix: this.prefix + begin });
    const list = async () => {
      const files: StoredFile[] = [];
      for await (const { Contents = [] } of pages)
        for (const { Key: key = '', Size: bytes = 0, LastModified } of Contents) {
          const path = key.slice(this.prefix.length);
          files.push({ path, isFolder: false, names: 1, bytes, changedMs: timeOf(LastModified) });
        }
      return files;
    };
    return (await this.ask(`listing ${this.address(begin)}`, list))!;
  }

  async put(path: string, body: Uint8Array, sha: string): Promise<void> {
    const checksum = Buffer.from(sha, 'hex').toString('base64');
    await this.ask(`writing ${this.address(path)}`, () =>
      this.client.send(new PutObjectCommand({ ...this.at(path), Body: body, ChecksumSHA256: checksum })),
    );
  }

  /** Uploads a local file, a large one in parts. */
  async upload(path: string, file: string, sha: string): Promise<void> {
    if ((await stat(file)).size <= PART_BYTES) return this.put(path, await readFile(file), sha);
    await this.ask(`writing ${this.address(path)}`, async () => {
      const upload = new Upload({
        client: this.client,
        params: { ...this.at(path), Body: createReadStream(file), ChecksumAlgorithm: 'CRC32' },
        partSize: PART_BYTES,
        queueSize: 2,
      });
      await upload.done();
    });
  }

  /** Writes the object into a new local file, flushed; returns false if there is none. */
  async download(path: string, file: string): Promise<boolean> {
    const send = async () => {
      const { Body: body } = await this.client.send(new GetObjectCommand(this.at(path)));
      await pipeline(body as Readable, createWriteStream(file, { flags: 'wx', flush: true }));
      return true;
    };
    return (await this.ask(`reading ${this.address(path)}`, send, 404)) ?? false;
  }

  /** Throws BadInput if the server ignores conditions: two writers of one path would both succeed. */
  async probe(): Promise<void> {
    const path = `probe/${randomUUID()}`;
    await this.putText(path, 'first', { IfNoneMatch: '*' });
    const taken = [
      await this.putText(path, 'second', { IfNoneMatch: '*' }),
      await this.putText(path, 'third', { IfMatch: '"00000000000000000000000000000000"' }),
    ];
    await this.remove(path);
    if (!taken.includes(true)) return;
    const fix = 'take a server that heeds If-None-Match and If-Match on PUT, such as AWS S3 or SeaweedFS';
    throw new OutsideFailure('BadInput', `CAMPAIGN_STORE: ${this.address('')} ignores conditions of writes; ${fix}`);
  }
}

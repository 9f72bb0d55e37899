/**
 * What the store asks of a bucket. A text is created once by a conditional write (If-None-Match), which is what entries of keys and segments of logs
 * rest on. Endpoint, region and credentials are those of every AWS tool (AWS_ENDPOINT_URL_S3, AWS_REGION, AWS_PROFILE, ...).
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
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { OutsideFailure, reasonOf } from '../domain/failures';
import type { StoredFile } from './content-store';
import { flush } from './durable-file';

/** Larger files go up in parts of this size, two at once. */
const PART_BYTES = 64 * 1024 ** 2;
const CONNECT_MS = 5_000;
/** Without a byte. */
const SILENCE_MS = 60_000;

export interface BucketAddress {
  bucket: string;
  /** Without slashes around it; may be empty. */
  prefix: string;
}

/** Of `s3://bucket/prefix`. @throws OutsideFailure BadInput */
export function parseS3(url: string): BucketAddress {
  const [, bucket, prefix = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(url) ?? [];
  if (!bucket)
    throw new OutsideFailure('BadInput', `CAMPAIGN_STORE: ${url} is no address of a bucket; write s3://BUCKET/PREFIX`);
  return { bucket, prefix: prefix.replace(/^\/+|\/+$/g, '') };
}

const statusOf = (error: unknown): number | undefined =>
  (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;

export interface Stored {
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
    // Which Node is needed is doctor's to say, not every command's.
    process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';
    const endpoint = process.env['AWS_ENDPOINT_URL_S3'] ?? process.env['AWS_ENDPOINT_URL'];
    this.client = new S3Client({
      // Others than AWS know no buckets by host names, and not all of its checksums.
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

  /** What `send` gives; undefined where the answer is one of the statuses. @throws OutsideFailure StoreUnavailable */
  private async ask<Result>(
    what: string,
    send: () => Promise<Result>,
    ...unless: number[]
  ): Promise<Result | undefined> {
    try {
      return await send();
    } catch (error) {
      const status = statusOf(error);
      if (status !== undefined && unless.includes(status)) return undefined;
      const shown = status === undefined ? reasonOf(error) : `${status} ${(error as Error).name}: ${reasonOf(error)}`;
      const fix = 'see to the bucket, AWS_ENDPOINT_URL_S3 and the credentials';
      throw new OutsideFailure('StoreUnavailable', `${what}: ${shown}; ${fix}`);
    }
  }

  async get(path: string): Promise<Stored | undefined> {
    return this.ask(
      `reading ${this.address(path)}`,
      async () => {
        const answer = await this.client.send(new GetObjectCommand(this.at(path)));
        const pieces: Buffer[] = [];
        for await (const piece of answer.Body as Readable) {
          pieces.push(piece as Buffer);
        }
        return { body: Buffer.concat(pieces), etag: answer.ETag!, changedMs: answer.LastModified?.getTime() ?? 0 };
      },
      404,
    );
  }

  /** When the file was written, by the bucket's clock; undefined where there is none. */
  async changedMs(path: string): Promise<number | undefined> {
    const head = () => this.client.send(new HeadObjectCommand(this.at(path)));
    const found = await this.ask(`looking for ${this.address(path)}`, head, 404);
    return found && (found.LastModified?.getTime() ?? 0);
  }

  /** The tag of what was put: by `when`, unless something is there (IfNoneMatch), or while what is there is that (IfMatch). */
  private async putText(path: string, text: string, when: { IfNoneMatch?: '*'; IfMatch?: string } = {}) {
    for (;;) {
      let isBusy = false;
      const send = () =>
        this.client.send(new PutObjectCommand({ ...this.at(path), Body: text, ...when })).catch((error: unknown) => {
          // Another conditional write of it is under way.
          isBusy = statusOf(error) === 409;
          throw error;
        });
      const done = await this.ask(`writing ${this.address(path)}`, send, 412, 409, ...(when.IfMatch ? [404] : []));
      if (!isBusy) return done?.ETag;
    }
  }

  /**
   * Puts text where nothing is, and gives its tag; undefined where something is. Of several writers exactly one succeeds, and whoever put the same
   * text before counts as that one.
   */
  async create(path: string, text: string): Promise<string | undefined> {
    for (;;) {
      const etag = await this.putText(path, text, { IfNoneMatch: '*' });
      if (etag !== undefined) return etag;
      const there = await this.get(path);
      if (!there) continue;
      // Its answer was lost, and the request was sent again.
      if (there.body.toString() === text) return there.etag;
      if (there.body.length > 0) return undefined;
      const over = await this.putText(path, text, { IfMatch: there.etag });
      if (over !== undefined) return over;
    }
  }

  async replace(path: string, text: string): Promise<void> {
    await this.putText(path, text);
  }

  /** Replaces what has this tag; returns false if something else is there, or nothing. */
  async replaceIf(path: string, text: string, etag: string): Promise<boolean> {
    return (await this.putText(path, text, { IfMatch: etag })) !== undefined;
  }

  /** With `etag`, only while that is what is there: then it is emptied, as few servers delete on a condition, and what is empty counts as not there. */
  async remove(path: string, etag?: string): Promise<boolean> {
    if (etag !== undefined) return this.replaceIf(path, '', etag);
    await this.ask(
      `removing ${this.address(path)}`,
      () => this.client.send(new DeleteObjectCommand(this.at(path))),
      404,
    );
    return true;
  }

  /** Files whose paths begin so, in the order of their names; `after`: only those that follow this path. */
  async list(begin: string, after?: string): Promise<(StoredFile & { etag: string })[]> {
    const files: (StoredFile & { etag: string })[] = [];
    for (let token: string | undefined, isLast = false; !isLast;) {
      const page = await this.ask(`listing ${this.address(begin)}`, () =>
        this.client.send(
          new ListObjectsV2Command({
            Bucket: this.name,
            Prefix: this.prefix + begin,
            ...(after !== undefined && { StartAfter: this.prefix + after }),
            ...(token && { ContinuationToken: token }),
          }),
        ),
      );
      for (const { Key: key = '', Size: bytes = 0, LastModified, ETag: etag = '' } of page?.Contents ?? []) {
        const path = key.slice(this.prefix.length);
        files.push({ path, isFolder: false, names: 1, bytes, changedMs: LastModified?.getTime() ?? 0, etag });
      }
      token = page?.NextContinuationToken;
      isLast = token === undefined;
    }
    return files;
  }

  async put(path: string, body: Uint8Array, sha: string): Promise<void> {
    const checksum = Buffer.from(sha, 'hex').toString('base64');
    await this.ask(`writing ${this.address(path)}`, () =>
      this.client.send(new PutObjectCommand({ ...this.at(path), Body: body, ChecksumSHA256: checksum })),
    );
  }

  /** A local file, in parts where it is large. */
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

  /** Into a new local file, flushed; whether there is such an object. */
  async download(path: string, file: string): Promise<boolean> {
    const found = await this.ask(
      `reading ${this.address(path)}`,
      async () => {
        const answer = await this.client.send(new GetObjectCommand(this.at(path)));
        await pipeline(answer.Body as Readable, createWriteStream(file, { flags: 'wx' }));
        return true;
      },
      404,
    );
    if (found) await flush(file);
    return found ?? false;
  }

  /** @throws OutsideFailure BadInput where the server takes no notice of conditions: of two writers both would be told that they won. */
  async probe(): Promise<void> {
    const path = `probe/${randomUUID()}`;
    await this.putText(path, 'first', { IfNoneMatch: '*' });
    const taken = [
      await this.putText(path, 'second', { IfNoneMatch: '*' }),
      await this.putText(path, 'third', { IfMatch: '"00000000000000000000000000000000"' }),
    ];
    await this.remove(path);
    if (taken.every((etag) => etag === undefined)) return;
    const fix = 'take a server that heeds If-None-Match and If-Match on PUT, such as AWS S3 or SeaweedFS';
    throw new OutsideFailure('BadInput', `CAMPAIGN_STORE: ${this.address('')} ignores conditions of writes; ${fix}`);
  }
}

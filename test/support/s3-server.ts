/** A real S3 server (SeaweedFS, `make s3-server`) on loopback, with a bucket; its data outlive it, so that it can be killed and started again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateBucketCommand, GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { freePorts } from '../../src/cli/ports';
import { shared } from './services';

const WEED = process.env['WEED'] ?? resolve(__dirname, '../../.venv-s3/bin/weed');
const credentials = { accessKeyId: 'test', secretAccessKey: 'test-secret' };

export interface S3Server {
  /** The environment variables with which a process reaches it. */
  env: Record<string, string>;
  client: S3Client;
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Kills it and removes its data. */
  close(): Promise<void>;
}

export const bucket = 'campaigns';

const clientAt = (endpoint: string): S3Client =>
  new S3Client({ endpoint, forcePathStyle: true, region: 'us-east-1', credentials, maxAttempts: 1 });

/** Lets `openS3Store` find the S3 server of all test files. Files use prefixes of their own. */
export function sharedS3ForTests(use: (server: Pick<S3Server, 'env' | 'client'>) => void = () => undefined): void {
  let client: S3Client | undefined;
  beforeAll(async () => {
    const env = (await shared<S3Server['env']>('s3'))!;
    Object.assign(process.env, env);
    client = clientAt(env['AWS_ENDPOINT_URL_S3']!);
    use({ env, client });
  });
  afterAll(() => client?.destroy());
}

/** Starts a server for the tests of a file, which may kill it, and lets `openS3Store` find it. */
export function s3ServerForTests(use: (server: S3Server) => void): void {
  let server: S3Server | undefined;
  beforeAll(async () => {
    server = await startS3Server();
    Object.assign(process.env, server.env);
    use(server);
  });
  afterAll(() => server?.close());
}

export async function startS3Server(): Promise<S3Server> {
  const folder = mkdtempSync(join(tmpdir(), 's3-server-'));
  const config = join(folder, 's3.json');
  const { accessKeyId: accessKey, secretAccessKey: secretKey } = credentials;
  const identity = {
    name: 'test',
    credentials: [{ accessKey, secretKey }],
    actions: ['Admin', 'Read', 'Write', 'List'],
  };
  writeFileSync(config, JSON.stringify({ identities: [identity] }));
  mkdirSync(join(folder, 'data'));
  const services = ['master', 'volume', 'filer', 's3'];
  const ports = await freePorts({ count: 2 * services.length, except: [] });
  const portOptions = services.flatMap((name, n) => [
    `-${name}.port=${ports[2 * n]}`,
    `-${name}.port.grpc=${ports[2 * n + 1]}`,
  ]);
  const endpoint = `http://127.0.0.1:${ports[6]}`;
  const client = clientAt(endpoint);
  let server: ChildProcess | undefined;

  async function start(): Promise<void> {
    const options = [
      ...['-ip=127.0.0.1', '-ip.bind=127.0.0.1', '-filer', '-s3', '-s3.iam=false', `-s3.config=${config}`],
      ...['-s3.port.iceberg=0', '-s3.port.lance=0', '-master.telemetry=false', `-dir=${join(folder, 'data')}`],
      ...['-volume.max=100', '-master.volumeSizeLimitMB=64', ...portOptions],
    ];
    server = spawn(WEED, ['server', ...options], { stdio: 'ignore', cwd: folder });
    const gone = new Promise<never>((_, reject) => server!.once('error', reject));
    for (let tries = 0; ; tries++) {
      try {
        const made = client.send(new CreateBucketCommand({ Bucket: bucket })).catch((error: Error) => {
          if (!/BucketAlready/.test(error.name)) throw error;
        });
        await Promise.race([gone, made]);
        // The disk is there some time after the door.
        await client.send(new PutObjectCommand({ Bucket: bucket, Key: 'ready', Body: 'ready' }));
        await client.send(new GetObjectCommand({ Bucket: bucket, Key: 'ready' }));
        return;
      } catch (error) {
        if ((error as { code?: string }).code === 'ENOENT' || tries === 200) throw error;
        await sleep(200);
      }
    }
  }

  async function kill(): Promise<void> {
    const ended = new Promise((done) => server?.once('close', done));
    if (server?.kill('SIGKILL')) await ended;
    server = undefined;
  }

  await start();
  return {
    env: {
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_ACCESS_KEY_ID: accessKey,
      AWS_SECRET_ACCESS_KEY: secretKey,
      AWS_REGION: 'us-east-1',
    },
    client,
    kill,
    start,
    close: async () => {
      await kill();
      client.destroy();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

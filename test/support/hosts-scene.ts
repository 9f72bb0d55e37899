/** A campaign on three hosts that share nothing but an S3 server, Temporal, and HTTP. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { openS3Store } from '../../src/store/s3-store';
import { Sequence } from '../../src/store/sequence';
import { trainingResultSchema } from '../../src/domain/results';
import { parseReport, type Report } from '../../src/report/model';
import { type Marker, trainingPath } from '../../src/training/markers';
import { devServer } from '../workflows/environment';
import { commandWith, repository, writeCampaign } from './campaign-run';
import { campaignFiles } from './faults-campaigns';
import { Host, until } from './hosts';
import { bucket, type S3Server, startS3Server } from './s3-server';
import { makeCertificates, startTemporalProxy } from './temporal-proxy';
import { readJson } from '../../src/store/store';
import { storedKeys } from './stored-keys';

const model = join(repository, 'models', 'base');
const POOL = 'hosts';
const portOf = (address: string): number => Number(/\d+$/.exec(address)?.[0]);

/** The services that the hosts share. */
export class Between {
  private campaigns = 0;
  private hosts: Host[] = [];

  private constructor(
    readonly folder: string,
    readonly s3: S3Server,
    private readonly server: TestWorkflowEnvironment,
    /** Temporal as the hosts see it: TLS, and client certificates. */
    private readonly door: Awaited<ReturnType<typeof startTemporalProxy>>,
    private readonly certificates: Record<string, string>,
  ) {}

  static async start(): Promise<Between> {
    const folder = mkdtempSync(join(tmpdir(), 'test-hosts-'));
    const [server, s3] = await Promise.all([devServer(), startS3Server()]);
    const of = makeCertificates(folder, 'server', 'client');
    const door = await startTemporalProxy({
      address: server.address,
      server: of('server'),
      clients: of('ca').cert,
    });
    return new Between(folder, s3, server, door, {
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: of('ca').cert,
      TEMPORAL_TLS_CLIENT_CERT_PATH: of('client').cert,
      TEMPORAL_TLS_CLIENT_KEY_PATH: of('client').key,
    });
  }

  /** A campaign that has been started, on a host with its control worker; those with GPUs are up to the scenario. */
  async begin(o: BeginOptions = {}): Promise<Scene> {
    const { steps = 6, settings = {}, more = '' } = o;
    const name = `hosts-${this.campaigns++}`;
    const common = {
      ...this.s3.env,
      ...this.certificates,
      CAMPAIGN_STORE: `s3://${bucket}/${name}`,
    };
    const make = (host: HostName) =>
      Host.make({
        name: host,
        folder: join(this.folder, name),
        temporalPort: portOf(this.door.address),
        s3Port: portOf(this.s3.env['AWS_ENDPOINT_URL_S3']!),
        settings: { ...common, ...settings[host] },
      });
    const [control, one, two] = await Promise.all([make('control'), make('one'), make('two')]);
    this.hosts.push(control, one, two);
    const file = join(this.folder, name, 'campaign.yaml');
    const lines = campaignFiles.small
      .replace('workers: {', `workers: { pool: ${POOL}-${name},`)
      .replace('steps: 6', `steps: ${steps}`)
      .concat(more);
    writeCampaign({ file, name, model, lines });
    const scene = new Scene(this, name, control, one, two);
    await control.control();
    await scene.command('run', file, '--detach');
    return scene;
  }

  closeHosts(): void {
    for (const host of this.hosts.splice(0)) host.close();
  }

  async close(): Promise<void> {
    this.closeHosts();
    this.door.close();
    await this.server.teardown();
    await this.s3.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

type HostName = 'control' | 'one' | 'two';
interface BeginOptions {
  steps?: number;
  /** Lines of the campaign file beside those that all have. */
  more?: string;
  /** Additional environment variables of the processes of a host. */
  settings?: Partial<Record<HostName, Record<string, string>>>;
}

export class Scene {
  constructor(
    private readonly between: Between,
    readonly name: string,
    readonly control: Host,
    readonly one: Host,
    readonly two: Host,
  ) {}

  command(...words: string[]): Promise<string> {
    const { env, home } = this.control;
    return commandWith(env, home, ...words, '--temporal-address', env['TEMPORAL_ADDRESS']!);
  }

  gpu = (host: Host): Promise<void> => host.gpu(`${POOL}-${this.name}`, model);

  /** The first training that has come to a step on the host. */
  trained = (host: Host, steps: number) =>
    until(`${host.name} has trained ${steps} steps`, 600, () => host.trainings().find((one) => one.steps >= steps));

  /** Kills the host in the middle of an update of the training. */
  async killedInUpdate(host: Host, name: string) {
    const training = () => host.trainings().find((one) => one.name === name)!;
    await until('an update', 300, () => training().steps < 6 && host.isUpdating(name), 5);
    host.kill();
    return training();
  }

  async report(): Promise<Report> {
    // On a busy machine a query may time out.
    const status = () => this.command('status', this.name, '--json').catch(() => '{}');
    const hasEnded = async () => (JSON.parse(await status()) as { status?: string }).status === 'COMPLETED';
    await until('the campaign ends', 1800, hasEnded);
    const text = await this.command('report', this.name, '--json');
    return parseReport(text);
  }

  private openStore() {
    const cache = join(this.between.folder, this.name, 'cache');
    return openS3Store({ url: this.control.env['CAMPAIGN_STORE']!, cache, cacheBytes: 1e9 });
  }

  /** Reads the result of every training. */
  async results() {
    const before = { ...process.env };
    Object.assign(process.env, this.between.s3.env);
    try {
      const store = this.openStore();
      const ended = (await storedKeys(store)).filter((key) => /^training\/[0-9a-f]{64}$/.test(key));
      return await Promise.all(
        ended.map(async (key) => {
          const result = await readJson(store, (await store.find(key))!, trainingResultSchema);
          const batches = (await store.provenance(result.metrics)).inputs;
          const id = key.slice('training/'.length);
          const texts = await new Sequence(store.files, `${trainingPath(this.name, id)}/markers`).read();
          const markers = texts.map((text) => JSON.parse(text) as Marker);
          return { ...result, batches, ...owners(markers), name: id.slice(0, 12) };
        }),
      );
    } finally {
      process.env = before;
    }
  }
}

/** The step from which each owner of a training went on, and how many steps were stored more than once. */
function owners(markers: readonly Marker[]): { from: number[]; again: number } {
  const from: number[] = [];
  for (const [n, { owner }] of markers.entries())
    if (owner !== markers[n - 1]?.owner) from.push(markers[n - 1]?.step ?? 0);
  return { from, again: markers.length - new Set(markers.map(({ step }) => step)).size };
}

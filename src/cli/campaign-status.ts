/**
 * Where a campaign stands, whoever can tell: its server, else the files of its home. A server that is gone, or that does not know the campaign,
 * is no error as long as the home knows it; only a cluster that was named must answer.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from './errors';
import { homeOf, namespace, type CommonOptions } from './options';
import { alignColumns, plain } from '../terminal';
import { readReport, reported } from './reports';
import { liveHolder, serverOf } from './run/processes';
import { connect, isServerAway, listCampaigns, type ListedCampaign, type Temporal } from './temporal';
import { follow } from './watch/follow';
import { createProgressOutput, frameLines, timeText, type ProgressOutput } from './watch/output';
import {
  readStatus as readStatusFile,
  takeSnapshot,
  UnknownCampaign,
  withKnown,
  type Snapshot,
} from './watch/snapshot';
import { Rates, stateOf } from './watch/tree';

export interface CampaignStatus {
  snapshot: Snapshot;
  /** Whether a server was there to ask. */
  server: boolean;
  /** Path of its report.json. */
  report?: string;
}

/** `work` with a connection to the cluster that is named or to the home's own server; with none if that does not run. */
export async function withServer<T>(
  options: CommonOptions,
  work: (temporal: Temporal | undefined) => Promise<T>,
): Promise<T> {
  const temporal = await connectIfRunning(options);
  try {
    return await work(temporal);
  } finally {
    await temporal?.close();
  }
}

async function connectIfRunning(options: CommonOptions): Promise<Temporal | undefined> {
  if (options.temporalAddress) return connect({ address: options.temporalAddress, namespace: namespace() });
  const address = serverOf(homeOf(options));
  if (!address) return undefined;
  return connect({ address, namespace: namespace() }).catch((error: unknown) => {
    if (error instanceof UserError) return undefined;
    throw error;
  });
}

/** @throws UserError that lists the known campaigns, if neither server nor home knows this one. */
export async function readStatus(
  temporal: Temporal | undefined,
  options: CommonOptions,
  name: string,
): Promise<CampaignStatus> {
  const home = homeOf(options).root;
  const source = { server: temporal !== undefined, ...reportFile(home, name) };
  try {
    if (temporal)
      return { snapshot: withKnown(await takeSnapshot(temporal, name), readStatusFile({ home, name })), ...source };
  } catch (error) {
    // The home's files may answer instead.
    const isAway = error instanceof UnknownCampaign || (!options.temporalAddress && isServerAway(error));
    if (!isAway) throw error;
  }
  const snapshot = readFromFiles({ home, name });
  if (snapshot) return { snapshot, ...source };
  const names = (await campaignsOf(temporal, options)).map((one) => one.name);
  throw new UserError(
    `there is no campaign ${name} in ${home}; ${names.length > 0 ? `known: ${names.join(', ')}` : 'none is known yet'}`,
  );
}

const reportFile = (home: string, name: string): Pick<CampaignStatus, 'report'> =>
  reported(home).includes(name) ? { report: join(home, name, 'report.json') } : {};

type StoredSnapshot = Snapshot & { asOf: number };

/** What the files of a home tell of a campaign. @throws UserError if its report is all there is, and damaged. */
function readFromFiles({ home, name }: { home: string; name: string }): StoredSnapshot | undefined {
  const last = readStatusFile({ home, name });
  if (last) return { ...last.snapshot, asOf: last.at };
  if (!reported(home).includes(name)) return undefined;
  const { startedAt, finishedAt = startedAt, status, stage } = readReport({ home, name }).campaign;
  const closedAt = Date.parse(finishedAt);
  return {
    name,
    runId: '',
    status: status === 'failed' ? 'FAILED' : 'COMPLETED',
    paused: false,
    startedAt: Date.parse(startedAt),
    closedAt,
    stage,
    ...(status === 'stopped_at_stage' && { stoppedAfter: stage }),
    asOf: closedAt,
    activities: [],
    children: [],
  };
}

interface CampaignRow extends ListedCampaign {
  /** When it was so, if only the home's files tell. */
  asOf?: number;
}

/** The campaigns that the server knows, and those that only the home's files know; newest first. */
export async function campaignsOf(temporal: Temporal | undefined, options: CommonOptions): Promise<CampaignRow[]> {
  const home = homeOf(options).root;
  const online: CampaignRow[] = temporal ? await listCampaigns(temporal) : [];
  // A cluster has campaigns of other homes, and this home may have none of it.
  const folders = options.temporalAddress || !existsSync(home) ? [] : readdirSync(home);
  const offline = folders
    .filter((name) => online.every((one) => one.name !== name))
    .flatMap((name): CampaignRow[] => {
      try {
        const snapshot = readFromFiles({ home, name });
        if (!snapshot) return [];
        return [{ name, status: stateOf(snapshot), startedAt: snapshot.startedAt, asOf: snapshot.asOf }];
      } catch (error) {
        // A damaged report hides no other campaign; it is told when it is asked for.
        if (error instanceof UserError) return [];
        throw error;
      }
    });
  return [...online, ...offline].sort((a, b) => b.startedAt - a.startedAt);
}

/** The list of campaigns, as `status` without a name prints it. */
export async function listLines(temporal: Temporal | undefined, options: CommonOptions): Promise<string[]> {
  const campaigns = await campaignsOf(temporal, options);
  if (options.json) return [JSON.stringify({ server: temporal !== undefined, campaigns })];
  if (campaigns.length === 0) return [noCampaigns(options)];
  const rows = alignColumns(
    campaigns.map(({ name, status, startedAt, attention, asOf }) => [
      plain(name),
      status,
      [
        `started ${timeText(startedAt)}`,
        ...(asOf === undefined ? [] : [`as of ${timeText(asOf)}`]),
        ...(attention === undefined ? [] : [`needs attention: ${attention}`]),
      ].join('  '),
    ]),
  );
  return temporal
    ? rows
    : [...rows, 'no Temporal server of this home is running: `campaign run FILE` goes on with one'];
}

const noCampaigns = (options: CommonOptions): string =>
  `no campaigns in ${homeOf(options).root} yet; start one with \`campaign run FILE\``;

/** The campaign that runs, if there is one only; else the only one there is. */
export async function onlyCampaign(temporal: Temporal | undefined, options: CommonOptions): Promise<string> {
  const campaigns = await campaignsOf(temporal, options);
  const running = campaigns.filter(({ status }) => /running|paused/.test(status));
  const [only, another] = running.length > 0 ? running : campaigns;
  if (!only) throw new UserError(noCampaigns(options));
  if (another)
    throw new UserError(`several campaigns: ${campaigns.map(({ name }) => name).join(', ')}; name one of them`);
  return only.name;
}

/** What to do next, and how fresh this is. */
function footerLines({ snapshot, server, report }: CampaignStatus): string[] {
  const { name, status, asOf } = snapshot;
  const next =
    status === 'COMPLETED'
      ? `\`campaign report ${name}\` shows its report`
      : '`campaign run FILE` goes on from what is done';
  const lines = report ? [`report ${report}`] : [];
  if (asOf === undefined) return status === 'RUNNING' || status === 'COMPLETED' ? lines : [...lines, next];
  const why = server ? 'the Temporal server does not know it' : 'no Temporal server of this home is running';
  const ui = server ? '' : ', `campaign serve` brings the UI back';
  return [...lines, `as of ${timeText(asOf)}; ${why}: ${next}${ui}`];
}

/** Frame and footer, as `status` and `report` print them. */
export function statusLines(status: CampaignStatus): string[] {
  const { columns = 100, isTTY } = process.stdout;
  const frame = { snapshot: status.snapshot, rates: new Rates(), now: Date.now(), columns, colour: isTTY === true };
  return [...frameLines(frame), ...footerLines(status)];
}

/** The same facts as one JSON object. */
export const statusJson = ({ snapshot, ...rest }: CampaignStatus): string => JSON.stringify({ ...snapshot, ...rest });

/** Follows a campaign that runs; of one that has ended, or that no server knows, the last frame. */
export async function watchCampaign(options: CommonOptions, name: string): Promise<void> {
  const output = createProgressOutput({ json: options.json, campaign: name });
  let status: CampaignStatus | undefined;
  // The home's next server may be at another address.
  while (!status) status = await watchOnServer(options, name, output);
  for (const line of footerLines(status)) output.note('campaign', line);
}

/** @returns undefined if another server has taken the place of the one that was asked. */
function watchOnServer(
  options: CommonOptions,
  name: string,
  output: ProgressOutput,
): Promise<CampaignStatus | undefined> {
  const home = homeOf(options);
  const address = serverOf(home);
  // A server that its supervisor starts again is waited for.
  const isGone = () => serverOf(home) !== address && (serverOf(home) !== undefined || !liveHolder(home));
  return withServer(options, async (temporal) => {
    const status = await readStatus(temporal, options, name);
    if (!temporal || status.snapshot.asOf !== undefined || status.snapshot.status !== 'RUNNING') {
      output.show(status.snapshot);
      return status;
    }
    const followed = await follow({
      temporal,
      name,
      output,
      signal: new AbortController().signal,
      known: readStatusFile({ home: home.root, name }),
      ...(options.temporalAddress ? {} : { isGone }),
    });
    const last = followed ?? status.snapshot;
    const report = reportFile(home.root, name);
    if (last.status !== 'RUNNING') return { snapshot: last, server: true, ...report };
    if (serverOf(home)) return undefined;
    const snapshot = readFromFiles({ home: home.root, name }) ?? { ...last, asOf: Date.now() };
    output.show(snapshot);
    return { snapshot, server: false, ...report };
  });
}

/**
 * Where a campaign stands, whoever can tell: its server, else the files of its home. Invariant: a server that is gone, or that does not know
 * the campaign, is no error as long as the home knows it; only a cluster that was named must answer.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../errors';
import { lazy } from '../lazy';
import { homeOf, namespace, serverOf, type CommonOptions } from '../options';
import type { ListedCampaign, Temporal } from '../temporal';
import type { Snapshot } from '../watch/snapshot';
import { readReport, reported } from './report-files';

export interface Standing {
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
  const temporal = await reach(options);
  try {
    return await work(temporal);
  } finally {
    await temporal?.close();
  }
}

async function reach(options: CommonOptions): Promise<Temporal | undefined> {
  const { connect } = lazy.temporal();
  if (options.temporalAddress) return connect({ address: options.temporalAddress, namespace: namespace() });
  const address = serverOf(homeOf(options));
  if (!address) return undefined;
  return connect({ address, namespace: namespace() }).catch((error: unknown) => {
    if (error instanceof UserError) return undefined;
    throw error;
  });
}

/** @throws UserError that lists the known ones, if neither server nor home knows the campaign. */
export async function standingOf(
  temporal: Temporal | undefined,
  options: CommonOptions,
  name: string,
): Promise<Standing> {
  const { takeSnapshot, withKnown, readStatus } = lazy.watch();
  const home = homeOf(options).root;
  const rest = { server: temporal !== undefined, ...reportFile(options, name) };
  try {
    if (temporal)
      return { snapshot: withKnown(await takeSnapshot(temporal, name), readStatus({ home, name })), ...rest };
  } catch (error) {
    if (!isAway(error, options)) throw error;
  }
  const snapshot = lastKnown({ home, name });
  if (snapshot) return { snapshot, ...rest };
  const names = (await campaignsOf(temporal, options)).map((one) => one.name);
  throw new UserError(
    `there is no campaign ${name} in ${home}; ${names.length > 0 ? `known: ${names.join(', ')}` : 'none is known yet'}`,
  );
}

export function reportFile(options: CommonOptions, name: string): Pick<Standing, 'report'> {
  const home = homeOf(options).root;
  return reported(home).includes(name) ? { report: join(home, name, 'report.json') } : {};
}

/** Whether the home's files may answer instead. */
const isAway = (error: unknown, { temporalAddress }: CommonOptions): boolean =>
  error instanceof lazy.watch().UnknownCampaign || (!temporalAddress && lazy.temporal().isServerAway(error));

type Known = Snapshot & { asOf: number };

/** What the files of a home tell of a campaign. @throws UserError if its report is all there is, and damaged. */
export function lastKnown({ home, name }: { home: string; name: string }): Known | undefined {
  const kept = lazy.watch().readStatus({ home, name });
  if (kept) return { ...kept.snapshot, asOf: kept.at };
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

/** A damaged report among others is told where it is asked for. */
function inList(at: { home: string; name: string }): Known | undefined {
  try {
    return lastKnown(at);
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

export interface CampaignRow extends ListedCampaign {
  /** When it was so, if only the home's files tell. */
  asOf?: number;
}

/** The campaigns that the server knows, and those that only the home's files know; newest first. */
export async function campaignsOf(temporal: Temporal | undefined, options: CommonOptions): Promise<CampaignRow[]> {
  const { stateOf } = lazy.watch();
  const home = homeOf(options).root;
  const online: CampaignRow[] = temporal ? await lazy.temporal().listCampaigns(temporal) : [];
  // A cluster has campaigns of other homes, and this home may have none of it.
  const folders = options.temporalAddress || !existsSync(home) ? [] : readdirSync(home);
  const offline = folders
    .filter((name) => online.every((one) => one.name !== name))
    .flatMap((name): CampaignRow[] => {
      const snapshot = inList({ home, name });
      return snapshot ? [{ name, status: stateOf(snapshot), startedAt: snapshot.startedAt, asOf: snapshot.asOf }] : [];
    });
  return [...online, ...offline].sort((a, b) => b.startedAt - a.startedAt);
}

/** What to do next, and how fresh this is. */
export function footerLines({ snapshot, server, report }: Standing): string[] {
  const { name, status, asOf } = snapshot;
  const next =
    status === 'COMPLETED'
      ? `\`campaign report ${name}\` shows its report`
      : '`campaign run FILE` goes on from what is done';
  const lines = report ? [`report ${report}`] : [];
  if (asOf === undefined) return status === 'RUNNING' || status === 'COMPLETED' ? lines : [...lines, next];
  const why = server ? 'the Temporal server does not know it' : 'no Temporal server of this home is running';
  const ui = server ? '' : ', `campaign serve` brings the UI back';
  return [...lines, `as of ${lazy.watch().timeText(asOf)}; ${why}: ${next}${ui}`];
}

/** Frame and footer, as `status` and `report` print them. */
export function standingLines(standing: Standing): string[] {
  const { frameLines, Rates } = lazy.watch();
  const { columns = 100, isTTY } = process.stdout;
  const frame = { snapshot: standing.snapshot, rates: new Rates(), now: Date.now(), columns, colour: isTTY === true };
  return [...frameLines(frame), ...footerLines(standing)];
}

/** The same facts as one JSON object. */
export const standingJson = ({ snapshot, ...rest }: Standing): string => JSON.stringify({ ...snapshot, ...rest });

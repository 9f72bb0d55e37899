/**
 * Finds the state of a campaign: from its server, else from the files of its home. A server that is gone or does not know the campaign is no error as long
 * as the home knows it; only a named cluster must answer. Following a running campaign waits for servers and workers that are temporarily unavailable;
 * workflow code that can't continue, because it was changed or throws, is an error.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { approvalCommands } from '../domain/approval';
import { approvalText } from '../report/approval-text';
import { timeText } from '../report/format';
import { openStore } from '../store/open-store';
import { columnsOf, wrapText } from '../terminal';
import { searchAttributes, workflowTypes } from '../workflows/messages';
import { shownApprovals } from './approvals';
import { campaignNames, UnknownCampaign, writtenAt } from './campaigns';
import { UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import type { Home } from './project';
import { readReport, reported } from './reports';
import { serverOf } from './services/processes';
import { isServerAway, type Temporal, withServer } from './temporal';
import { createProgressOutput, frameLines, type ProgressOutput } from './watch/output';
import { failureText, readStatus as readStatusFile, type Snapshot, takeSnapshot, withKnown } from './watch/snapshot';
import { stateOf } from './watch/tree';

/** @throws UserError that lists the known campaigns, if neither server nor home knows this one. */
export async function readStatus(
  temporal: Temporal | undefined,
  options: CommonOptions,
  name: string,
): Promise<Snapshot> {
  const home = homeOf(options);
  try {
    if (temporal) return withKnown(await takeSnapshot(temporal, name), readStatusFile({ home: home.root, name }));
  } catch (error) {
    // The home's files may answer instead.
    const isAway = error instanceof UnknownCampaign || (!options.temporalAddress && isServerAway(error));
    if (!isAway) throw error;
  }
  const snapshot = readFromHome(home, name);
  if (snapshot) return snapshot;
  throw new UnknownCampaign(name, {
    home: home.root,
    known: (await campaignsOf(temporal, options)).map((one) => one.name),
  });
}

/** Returns what a home's files know of a campaign. @throws UserError if its report is all there is, and damaged. */
function readFromHome({ root: home }: Home, name: string): Snapshot | undefined {
  const last = readStatusFile({ home, name });
  if (last) return last;
  if (!reported(home).includes(name)) return undefined;
  const { startedAt, finishedAt, stage } = readReport({ home, name }).campaign;
  const closedAt = Date.parse(finishedAt);
  return {
    ...{ name, runId: '', status: 'COMPLETED', startedAt: Date.parse(startedAt), closedAt, stage, asOf: closedAt },
    ...{ activities: [], children: [] },
  };
}

export interface CampaignRow {
  name: string;
  status: string;
  /** `approval` while it, or one of its children, waits for one. */
  attention?: string | undefined;
  /** When it ended, or else was last seen to change; undefined where that is not known. */
  changedAt?: number | undefined;
  /** Time of this state, if only the home knows it. */
  asOf?: number | undefined;
}

/** Campaigns that this server knows, each with its newest run. */
async function listCampaigns({ client }: Temporal, home: Home): Promise<CampaignRow[]> {
  const listed = new Map<string, CampaignRow>();
  const query = `WorkflowType = '${workflowTypes.campaign}'`;
  for await (const { workflowId: name, status, typedSearchAttributes: found, ...run } of client.workflow.list({
    query,
  })) {
    if (listed.has(name)) continue;
    listed.set(name, {
      name,
      status: stateOf({ status: status.name, stage: found.get(searchAttributes.stage) as Snapshot['stage'] }),
      changedAt: run.closeTime?.getTime() ?? Math.max(run.startTime.getTime(), writtenAt(home, name) ?? 0),
      attention: status.name === 'RUNNING' ? found.get(searchAttributes.attention) : undefined,
    });
  }
  // Children that run are few.
  const { capability, arm } = workflowTypes;
  const children = `WorkflowType IN ('${capability}', '${arm}') AND ExecutionStatus = 'Running'`;
  for await (const { workflowId, typedSearchAttributes } of client.workflow.list({ query: children })) {
    const row = listed.get(workflowId.split('/')[0]!);
    if (row) row.attention ??= typedSearchAttributes.get(searchAttributes.attention);
  }
  return [...listed.values()];
}

/** Returns the campaigns that the server or the home knows, the last changed first. */
export async function campaignsOf(temporal: Temporal | undefined, options: CommonOptions): Promise<CampaignRow[]> {
  const home = homeOf(options);
  const rows: CampaignRow[] = temporal ? await listCampaigns(temporal, home) : [];
  const known = new Set(rows.map(({ name }) => name));
  // A cluster has campaigns of other homes, and this home may have none of it.
  const names = options.temporalAddress ? [] : await campaignNames(home);
  for (const name of names.filter((one) => !known.has(one))) rows.push(rowOf(home, name));
  return rows.sort((a, b) => (b.changedAt ?? 0) - (a.changedAt ?? 0));
}

/** Returns what the home's files know of a campaign, as a row. */
function rowOf(home: Home, name: string): CampaignRow {
  const changedAt = writtenAt(home, name);
  try {
    const seen = readFromHome(home, name);
    if (seen) return { name, status: stateOf(seen), changedAt: seen.closedAt ?? changedAt, asOf: seen.asOf };
  } catch (error) {
    // A damaged report hides no other campaign; it is named when it is asked for.
    if (!(error instanceof UserError)) throw error;
  }
  return { name, status: 'without a report', changedAt };
}

/** Returns the next command and the time of the snapshot. */
function footerLines({ name, status, asOf }: Snapshot, report: string | undefined): string[] {
  const next =
    status === 'COMPLETED' ? `\`campaign report ${name}\` shows its report` : '`campaign run FILE` continues it';
  return [
    ...(report ? [`report ${report}`] : []),
    ...(asOf !== undefined ? [`as of ${timeText(asOf)}, since no Temporal server here knows it`] : []),
    ...(asOf !== undefined || status !== 'RUNNING' ? [next] : []),
  ];
}

const reportFile = (home: string, name: string): string | undefined =>
  reported(home).includes(name) ? join(home, name, 'report.json') : undefined;

/** `campaign status`: the state of a campaign, and what waits for approval. */
export function showStatus(
  name: string,
  { watch = false, ...options }: CommonOptions & { watch?: boolean },
): Promise<string | void> {
  if (watch) return watchCampaign(name, options);
  return withServer(options, async (temporal) => {
    const snapshot = await readStatus(temporal, options, name);
    const { root } = homeOf(options);
    const report = reportFile(root, name);
    const views = temporal && isWaiting(snapshot) ? await shownApprovals(temporal, name, await openStore(root)) : [];
    const waits = views.map((view) => ({ view, commands: Object.values(approvalCommands(name, view.waiting)) }));
    if (options.json) return JSON.stringify({ ...snapshot, report, ...(waits.length > 0 && { waits }) });
    const columns = columnsOf();
    const frame = frameLines({ snapshot, now: Date.now(), columns: columns ?? Infinity });
    const approvals = waits.flatMap(({ view, commands }) => [
      approvalText(view, columns),
      ...commands.map((command) => `  ${command}`),
    ]);
    return [wrapText([...frame, ...footerLines(snapshot, report)].join('\n'), columns), ...approvals].join('\n');
  });
}

export const isWaiting = ({ status, progress, children }: Snapshot): boolean =>
  status === 'RUNNING' && [{ progress }, ...children].some((one) => one.progress?.waiting);

/** Follows a campaign until it or its server ends, or shows the last state of an ended campaign. The outcome is in the output, not in the exit code. */
async function watchCampaign(name: string, options: CommonOptions): Promise<void> {
  // Ends with its reader: it holds nothing.
  process.stdout.once('error', () => process.exit());
  const home = homeOf(options);
  const output = createProgressOutput({ json: options.json, campaign: name });
  const address = serverOf(home);
  // A server that its supervisor restarts keeps its address, so the command waits for it.
  const isGone = () => !options.temporalAddress && serverOf(home) !== address;
  const snapshot = await withServer(options, async (temporal) => {
    const known = await readStatus(temporal, options, name);
    if (!temporal || known.asOf !== undefined || known.status !== 'RUNNING') return known;
    const { signal } = new AbortController();
    const last = (await follow({ temporal, name, output, signal, known, isGone })) ?? known;
    return last.status === 'RUNNING' ? (readFromHome(home, name) ?? { ...last, asOf: Date.now() }) : last;
  });
  output.show(snapshot);
  for (const line of footerLines(snapshot, reportFile(home.root, name))) output.note('campaign', line);
}

interface Following {
  temporal: Temporal;
  name: string;
  output: ProgressOutput;
  signal: AbortSignal;
  /** Called with every snapshot that a worker has answered for, and waited for. */
  onSnapshot?: (snapshot: Snapshot) => void | Promise<void>;
  /** The last known state, which is shown while no worker answers. */
  known?: Snapshot | undefined;
  /** Called before every look. Returns true if the server no longer belongs to this campaign. */
  isGone?: () => boolean;
  /** Time that workflow code may fail before an error is thrown, ms. */
  failingMs?: number;
  pollMs?: number;
  /** Workers answer late while they start, and at the beginning of a workflow. */
  workerMs?: number;
}

/**
 * @returns the last snapshot: of the closed campaign, or the latest one when `signal` was raised or the server was gone.
 * @throws UserError if the code of a workflow fails for longer than `failingMs`.
 */
export async function follow(following: Following): Promise<Snapshot | undefined> {
  const { temporal, name, output, signal, onSnapshot, isGone, failingMs = Infinity } = following;
  const { pollMs = 1500, workerMs = 15_000 } = following;
  const noted = new Set<string>();
  /** Notes a problem once, until it is over (no text). */
  const note = (problem: string, text: string | false | undefined) => {
    if (!text) return noted.delete(problem);
    if (!noted.has(problem)) output.note('services', text);
    return noted.add(problem);
  };
  let last: Snapshot | undefined;
  let answeredAt = Date.now();
  let failingSince: number | undefined;
  while (!signal.aborted && !isGone?.()) {
    try {
      const seen = await takeSnapshot(temporal, name);
      note('server', undefined);
      last = withKnown(seen, last ?? following.known);
      if (signal.aborted) break;
      const isRunning = last.status === 'RUNNING';
      const [failing] = seen.failing ?? [];
      note('code', failing && failureText(failing));
      failingSince = failing && (failingSince ?? Date.now());
      if (failing && Date.now() - failingSince! >= failingMs)
        throw new UserError('failed', 'workflow code', failureText(failing));
      if (seen.progress || failing) answeredAt = Date.now();
      const isSilent = isRunning && Date.now() - answeredAt >= workerMs;
      note('worker', isSilent && 'the Temporal server answers, but no worker does: the campaign waits for a worker');
      if (seen.progress || !isRunning) {
        output.show(last);
        await onSnapshot?.(last);
      }
      if (!isRunning) break;
    } catch (error) {
      if (signal.aborted) break;
      if (!isServerAway(error)) throw error;
      answeredAt = Date.now();
      note('server', 'the Temporal server does not answer; waiting for it');
    }
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
  return last;
}

/**
 * Where a campaign stands, whoever can tell: its server, else the files of its home. A server that is gone, or that does not know the campaign,
 * is no error as long as the home knows it; only a cluster that was named must answer. One that runs is followed until it ends: a server or worker
 * that is away for a while is waited for; workflow code that can't go on, since it was changed or since it throws, is an error.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { defineSearchAttributeKey } from '@temporalio/common';
import { LAST_STAGE } from '../domain/work';
import { approvalText } from '../report/approval-text';
import { wrapText } from '../terminal';
import { searchAttributeNames, workflowTypes } from '../workflows/messages';
import { shownWaits } from './approvals';
import { InputError, messageOf, UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { readReport, reported } from './reports';
import { isHeld, serverOf } from './run/processes';
import { isServerAway, stoppedAfter, type Temporal, UnknownCampaign, withServer } from './temporal';
import { createProgressOutput, frameLines, type ProgressOutput, timeText } from './watch/output';
import {
  earlierRuns,
  failureText,
  type LastStatus,
  readStatus as readStatusFile,
  type Snapshot,
  takeSnapshot,
  withKnown,
} from './watch/snapshot';
import { Rates, stateOf } from './watch/tree';

export interface CampaignStatus {
  snapshot: Snapshot;
  /** Whether a server was there to ask. */
  server: boolean;
  /** Path of its report.json. */
  report?: string;
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
    if (temporal) {
      const snapshot = withKnown(await takeSnapshot(temporal, name), readStatusFile({ home, name }));
      return { snapshot: { ...snapshot, earlier: await earlierRuns(temporal, snapshot) }, ...source };
    }
  } catch (error) {
    // The home's files may answer instead.
    const isAway = error instanceof UnknownCampaign || (!options.temporalAddress && isServerAway(error));
    if (!isAway) throw error;
  }
  const snapshot = readFromFiles({ home, name });
  if (snapshot) return { snapshot, ...source };
  const known = (await campaignsOf(temporal, options)).map((one) => one.name);
  throw new UnknownCampaign(name, { home, known });
}

const reportFile = (home: string, name: string): Pick<CampaignStatus, 'report'> =>
  reported(home).includes(name) ? { report: join(home, name, 'report.json') } : {};

/** What the files of a home tell of a campaign. @throws UserError if its report is all there is, and damaged. */
function readFromFiles({ home, name }: { home: string; name: string }): (Snapshot & { asOf: number }) | undefined {
  const last = readStatusFile({ home, name });
  if (last) return { ...last.snapshot, asOf: last.at };
  if (!reported(home).includes(name)) return undefined;
  const { startedAt, finishedAt, stage } = readReport({ home, name }).campaign;
  const closedAt = Date.parse(finishedAt);
  return {
    name,
    runId: '',
    status: 'COMPLETED',
    startedAt: Date.parse(startedAt),
    closedAt,
    stage,
    ...(stage !== LAST_STAGE && { stoppedAfter: stage }),
    asOf: closedAt,
    activities: [],
    children: [],
  };
}

export interface CampaignRow {
  name: string;
  status: string;
  startedAt: number;
  closedAt?: number | undefined;
  /** `approval` while it, or one of its children, waits for one. */
  attention?: string | undefined;
  /** When it was so, if only the home's files tell. */
  asOf?: number;
}

/** Campaigns that this server knows, each with its newest run. */
export async function listCampaigns({ client }: Temporal): Promise<CampaignRow[]> {
  const listed = new Map<string, CampaignRow>();
  const attention = defineSearchAttributeKey(searchAttributeNames.attention, 'KEYWORD');
  const query = `WorkflowType = '${workflowTypes.campaign}'`;
  for await (const { workflowId: name, status, ...run } of client.workflow.list({ query })) {
    if (listed.has(name)) continue;
    const stopped = status.name === 'COMPLETED' ? stoppedAfter(run.memo) : undefined;
    listed.set(name, {
      name,
      status: stateOf({ status: status.name, stoppedAfter: stopped }),
      startedAt: run.startTime.getTime(),
      closedAt: run.closeTime?.getTime(),
      attention: status.name === 'RUNNING' ? run.typedSearchAttributes.get(attention) : undefined,
    });
  }
  // Children that run are few.
  const { capability, arm } = workflowTypes;
  const children = `WorkflowType IN ('${capability}', '${arm}') AND ExecutionStatus = 'Running'`;
  for await (const { workflowId, typedSearchAttributes } of client.workflow.list({ query: children })) {
    const row = listed.get(workflowId.split('/')[0]!);
    if (row) row.attention ??= typedSearchAttributes.get(attention);
  }
  return [...listed.values()];
}

/** The campaigns that the server knows, and those that only the home's files know; newest first. */
export async function campaignsOf(temporal: Temporal | undefined, options: CommonOptions): Promise<CampaignRow[]> {
  const home = homeOf(options).root;
  const rows: CampaignRow[] = temporal ? await listCampaigns(temporal) : [];
  const known = new Set(rows.map(({ name }) => name));
  // A cluster has campaigns of other homes, and this home may have none of it.
  const folders = options.temporalAddress || !existsSync(home) ? [] : readdirSync(home);
  for (const name of folders.filter((one) => !known.has(one)))
    try {
      const snapshot = readFromFiles({ home, name });
      if (snapshot) {
        const { startedAt, closedAt, asOf } = snapshot;
        rows.push({ name, status: stateOf(snapshot), startedAt, closedAt, asOf });
      }
    } catch (error) {
      // A damaged report hides no other campaign; it is named when it is asked for.
      if (!(error instanceof UserError)) throw error;
    }
  return rows.sort((a, b) => b.startedAt - a.startedAt);
}

/** What to do next, and how fresh this is. */
function footerLines({ snapshot: { name, status, asOf }, server, report }: CampaignStatus): string[] {
  const lines = report ? [`report ${report}`] : [];
  const next =
    status === 'COMPLETED'
      ? `\`campaign report ${name}\` shows its report`
      : '`campaign run FILE` goes on from what is done';
  if (asOf !== undefined) {
    const why = server ? 'the Temporal server does not know it' : 'no Temporal server of this home is running';
    const ui = server ? '' : ', `campaign ui` starts the UI';
    lines.push(`as of ${timeText(asOf)}; ${why}: ${next}${ui}`);
  } else if (status !== 'RUNNING' && status !== 'COMPLETED') lines.push(next);
  return lines;
}

/** Returns the frame and what to do next. */
function statusLines(status: CampaignStatus): string[] {
  const { columns = 100, isTTY } = process.stdout;
  const frame = { snapshot: status.snapshot, rates: new Rates(), now: Date.now(), columns, colour: isTTY === true };
  return [...frameLines(frame), ...footerLines(status)];
}

/** The same facts as one JSON object. */
const statusJson = ({ snapshot, ...rest }: CampaignStatus & { waits?: object[] }): string =>
  JSON.stringify({ ...snapshot, ...rest });

type StatusOptions = CommonOptions & { watch?: boolean };

/** `campaign status`: the state of a campaign, and what waits for approval. */
export function showStatus(
  name: string | undefined,
  { watch = false, ...options }: StatusOptions,
): Promise<string | void> {
  if (name === undefined)
    throw new InputError({ code: 'missing_field', field: 'name', fix: '`campaign list` shows the campaigns' });
  if (watch) return watchCampaign(name, options);
  return withServer(options, async (temporal) => {
    const status = await readStatus(temporal, options, name);
    const waits = temporal && isWaiting(status.snapshot) ? await shownWaits(temporal, name, options) : [];
    if (options.json) return statusJson({ ...status, ...(waits.length > 0 && { waits }) });
    const approvals = waits.flatMap(({ view, commands }) => [
      approvalText(view, process.stdout.columns),
      ...commands.map((command) => `  ${command}`),
    ]);
    const lines = wrapText(statusLines(status).join('\n'), process.stdout.columns);
    return [lines, ...approvals].join('\n');
  });
}

const isWaiting = ({ status, progress, children }: Snapshot): boolean =>
  status === 'RUNNING' && [{ progress }, ...children].some((one) => one.progress?.waiting);

/** Follows a campaign until it ends, or shows the last state of one that has. How it ended is in the output, not in the exit code. */
async function watchCampaign(name: string, options: CommonOptions): Promise<void> {
  // Ends with its reader: it holds nothing.
  const leave = (): never => process.exit();
  process.stdout.once('error', leave);
  try {
    const output = createProgressOutput({ json: options.json, campaign: name });
    let status: CampaignStatus | undefined;
    // The home's next server may be at another address.
    while (!status) status = await watchOnServer(options, name, output);
    const columns = options.json ? undefined : process.stdout.columns;
    for (const line of footerLines(status)) output.note('campaign', wrapText(line, columns));
  } finally {
    process.stdout.off('error', leave);
  }
}

/** @returns undefined if another server has taken the place of the one that was asked. */
function watchOnServer(
  options: CommonOptions,
  name: string,
  output: ProgressOutput,
): Promise<CampaignStatus | undefined> {
  const home = homeOf(options);
  const { root } = home;
  const address = serverOf(home);
  // A server that its supervisor starts again is waited for.
  const isGone = () => {
    const now = serverOf(home);
    return now !== address && (now !== undefined || !isHeld(home));
  };
  return withServer(options, async (temporal) => {
    const status = await readStatus(temporal, options, name);
    if (!temporal || status.snapshot.asOf !== undefined || status.snapshot.status !== 'RUNNING') {
      output.show(status.snapshot);
      return status;
    }
    const known = readStatusFile({ home: root, name });
    const { signal } = new AbortController();
    const at = options.temporalAddress ? {} : { isGone };
    const last = (await follow({ temporal, name, output, signal, known, ...at })) ?? status.snapshot;
    if (last.status !== 'RUNNING') return { snapshot: last, server: true, ...reportFile(root, name) };
    if (serverOf(home)) return undefined;
    const snapshot = readFromFiles({ home: root, name }) ?? { ...last, asOf: Date.now() };
    output.show(snapshot);
    return { snapshot, server: false, ...reportFile(root, name) };
  });
}

/**
 * Counts failures of workflow code that happen while somebody looks: those from before the first look may have been mended. What it returns is
 * called with every snapshot, and throws a UserError once the code of a workflow has failed `limit` times in a row.
 */
export function failureLimit(limit: number): (snapshot: Pick<Snapshot, 'failing'>) => void {
  let before: Map<string, number> | undefined;
  return ({ failing = [] }) => {
    const uncounted = new Map<string, number>();
    for (const one of failing) {
      const { workflowId, failures } = one;
      const least = Math.min(before ? (before.get(workflowId) ?? 0) : failures, failures);
      uncounted.set(workflowId, least);
      if (failures - least >= limit)
        throw new UserError(
          `${failureText(one)}; fix the code and build it, then give the same command with --restart: the campaign starts again from what is done`,
        );
    }
    before = uncounted;
  };
}

interface Following {
  temporal: Temporal;
  name: string;
  output: ProgressOutput;
  signal: AbortSignal;
  /** Called with every snapshot, and waited for. What it throws is noted once and ends nothing. */
  onSnapshot?: (snapshot: Snapshot) => void | Promise<void>;
  /** What is shown of the campaign while no worker answers. */
  known?: LastStatus | undefined;
  /** Asked before every look: whether the server is not this campaign's any more. */
  isGone?: () => boolean;
  /** How often in a row the code of a workflow may fail. */
  maxFailures?: number;
  pollMs?: number;
  /** Workers answer late while they start, and at the beginning of a workflow. */
  workerMs?: number;
}

/**
 * @returns the last snapshot: of the closed campaign, or what was seen when `signal` was raised or the server was gone.
 * @throws UserError if the code of a workflow fails `maxFailures` times in a row.
 */
export async function follow(following: Following): Promise<Snapshot | undefined> {
  const { temporal, name, output, signal, onSnapshot, isGone, maxFailures = Infinity } = following;
  const { pollMs = 1500, workerMs = 15_000 } = following;
  const checkFailures = failureLimit(maxFailures);
  const noted = new Set<string>();
  /** Notes a problem once, until it is over (no text). */
  const note = (problem: string, text: string | false | undefined) => {
    if (!text) return noted.delete(problem);
    if (!noted.has(problem)) output.note('services', text);
    return noted.add(problem);
  };
  let { known } = following;
  let last: Snapshot | undefined;
  let answered = Date.now();
  while (!signal.aborted && !isGone?.()) {
    try {
      const seen = await takeSnapshot(temporal, name);
      note('server', undefined);
      last = withKnown(seen, known);
      if (last.progress) known = { snapshot: last, at: Date.now() };
      if (signal.aborted) break;
      const [failing] = seen.failing ?? [];
      note('code', failing && failureText(failing));
      checkFailures(seen);
      if (seen.progress) answered = Date.now();
      const isSilent = !failing && seen.status === 'RUNNING' && !seen.progress && Date.now() - answered >= workerMs;
      if (isSilent)
        note('worker', 'the Temporal server answers, but no worker does: nothing goes on until one is back');
      else if (seen.progress) note('worker', undefined);
      output.show(last);
      try {
        await onSnapshot?.(last);
      } catch (error) {
        note('hook', `${messageOf(error)}; the campaign goes on`);
      }
      if (last.status !== 'RUNNING') break;
    } catch (error) {
      if (signal.aborted) break;
      if (!isServerAway(error)) throw error;
      answered = Date.now();
      note('server', 'the Temporal server does not answer; waiting for it');
    }
    await sleep(pollMs, undefined, { signal }).catch(() => undefined);
  }
  return last;
}

/** What of a campaign waits for a person: its selected capabilities together, or environments of its children. It is shown, picked and decided. */
import {
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { openStore } from '../store/open-store';
import { sha256 } from '../store/hash';
import type { ArtifactStore } from '../store/store';
import {
  type Answer,
  type Approval,
  approvalCommands,
  type Decision,
  editedCapabilitiesSchema,
} from '../domain/approval';
import { type ApprovalView, capabilitiesView, environmentView } from '../report/build/approval';
import { print } from '../terminal';
import { type ApprovalRequest, queryNames, updateNames, workflowIds } from '../workflows/messages';
import { readStatus } from './campaign-status';
import { type CommonOptions, homeOf } from './options';
import { invalidOption, messageOf, UserError } from './errors';
import { readInput } from './input';
import { type Temporal, withServer, withTemporal } from './temporal';
import { type Snapshot, takeSnapshot } from './watch/snapshot';

export interface PendingApproval extends ApprovalRequest {
  /** The workflow that waits. */
  workflowId: string;
}

/** Returns what waits for approval, with the commands that decide. Its texts are copied into the campaign's folder, to be edited. */
export async function shownWaits(
  temporal: Temporal,
  campaign: string,
  options: CommonOptions,
): Promise<ShownApproval[]> {
  const home = homeOf(options);
  const pending = await pendingApprovals(temporal, campaign).catch((error: unknown) => {
    if (error instanceof UserError) return []; // it has ended, or no worker answers
    throw error;
  });
  return showApprovals(pending, { campaign, folder: join(home.root, campaign), store: await openStore(home.root) });
}

export interface DecideOptions extends CommonOptions {
  edit?: string;
  reason?: string;
}

/** `campaign approve`. */
export const approve = (campaign: string, named: string | undefined, { edit, ...options }: DecideOptions) =>
  withCampaign(campaign, options, async (temporal) => {
    const pending = await pendingApprovals(temporal, campaign);
    const what = named === undefined ? [] : [named];
    const chosen = choose({ campaign, pending, what, verb: 'approve', edits: edit !== undefined });
    const [first] = chosen;
    const edited =
      edit !== undefined && first ? await readEdit(edit, first.approval, await openStore(homeOf(options).root)) : {};
    for (const one of chosen) print(await decide(temporal, one, { kind: 'approve', ...edited }));
  });

/** `campaign reject`. */
export async function reject(campaign: string, what: string[], { reason = '', ...options }: DecideOptions) {
  if (reason.trim() === '') throw invalidOption('--reason', 'blank', 'say why');
  await withCampaign(campaign, options, async (temporal) => {
    const chosen = choose({ campaign, pending: await pendingApprovals(temporal, campaign), what, verb: 'reject' });
    for (const one of chosen) print(await rejectOne(temporal, one, reason));
  });
}

const rejectOne = (temporal: Temporal, one: Chosen, reason: string): Promise<string> =>
  decide(temporal, one, { kind: 'reject', reason, ...(one.names && { names: one.names }) });

export interface Given {
  verb: 'approve' | 'reject';
  what: string[];
  /** The digests of what was looked at: what waits meanwhile is not decided. */
  of: string[];
  /** Of a rejection. */
  reason?: string | undefined;
}

/** The same for a page that has shown what waits. @returns what was decided. */
export const decideOn = (campaign: string, { verb, what, of, reason = '' }: Given, options: CommonOptions) =>
  withTemporal(options, async (temporal): Promise<string[]> => {
    if (verb === 'reject' && reason.trim() === '') throw new UserError('reason is blank: say why');
    const pending = (await pendingApprovals(temporal, campaign)).filter(({ waiting }) => of.includes(waiting.of));
    const decided: string[] = [];
    for (const one of choose({ campaign, pending, what, verb }))
      decided.push(
        await (verb === 'approve' ? decide(temporal, one, { kind: verb }) : rejectOne(temporal, one, reason)),
      );
    return decided;
  });

/** What waits, as it is shown; nothing of a campaign that does not run. */
export const shownApprovals = (temporal: Temporal, campaign: string, store: ArtifactStore): Promise<ApprovalView[]> =>
  pendingApprovals(temporal, campaign).then((pending) => Promise.all(pending.map((one) => viewOf(one, store))));

/** `work` with the server that knows what waits; that a campaign has ended is told without one. */
const withCampaign = <T>(name: string, options: CommonOptions, work: (temporal: Temporal) => Promise<T>): Promise<T> =>
  withServer(options, async (temporal) => {
    if (temporal) return work(temporal);
    checkRuns((await readStatus(undefined, options, name)).snapshot);
    return withTemporal(options, work);
  });

function checkRuns({ name, status }: Snapshot): void {
  if (status !== 'RUNNING')
    throw new UserError(
      `campaign ${name} does not run (${status.toLowerCase()}): nothing of it waits for approval; \`campaign run FILE\` goes on with one that is not finished`,
    );
}

/** @throws UserError if the campaign does not run, or no worker is there to answer. */
async function pendingApprovals(temporal: Temporal, name: string): Promise<PendingApproval[]> {
  const snapshot = await takeSnapshot(temporal, name);
  checkRuns(snapshot);
  const { progress, children } = snapshot;
  if (!progress)
    throw new UserError(
      `no worker answers for campaign ${name}, so that nothing can be decided; \`campaign run FILE\` starts them`,
    );
  const waiting = [{ workflowId: workflowIds.campaign(name), progress }, ...children].filter(
    (one) => one.progress?.waiting,
  );
  const answers = await Promise.all(
    waiting.map(async ({ workflowId }) => {
      const asked = await temporal.client.workflow
        .getHandle(workflowId)
        .query<ApprovalRequest | null>(queryNames.approval);
      return asked ? [{ ...asked, workflowId }] : [];
    }),
  );
  return answers.flat();
}

/** Names everything that waits, on the command line. */
const ALL = 'all';

interface Chosen {
  approval: PendingApproval;
  /** Capabilities to leave out; undefined for all, and of an environment. */
  names?: string[];
}

/** What a command line is about. @throws UserError if it does not name exactly what is decided. */
export function choose(o: {
  campaign: string;
  pending: readonly PendingApproval[];
  what: readonly string[];
  verb: 'approve' | 'reject';
  /** Whether a file is given for what is approved. */
  edits?: boolean;
}): Chosen[] {
  const { campaign, pending, what, verb, edits = false } = o;
  const [first] = pending;
  if (!first) throw new UserError(`nothing of campaign ${campaign} waits for approval`);
  if (what.includes(ALL) && what.length > 1) throw new UserError(`"${ALL}" is all that waits: name nothing beside it`);
  if (what.length === 0 || what.includes(ALL)) {
    if (edits && pending.length > 1)
      throw new UserError(`--edit is of one: ${subjectsOf(pending)} wait for approval; name one of them`);
    return pending.map((approval) => ({ approval }));
  }
  const approvals = what.map((name) => {
    const approval = pending.find(({ waiting }) => waiting.names.includes(name));
    if (!approval) throw new UserError(`${name} does not wait for approval; what waits: ${subjectsOf(pending)}`);
    return { approval };
  });
  if (first.waiting.what === 'environment') return approvals;
  if (first.waiting.names.every((name) => what.includes(name))) return [{ approval: first }];
  if (verb === 'reject') return [{ approval: first, names: [...what] }];
  throw new UserError(
    `the selected capabilities of ${campaign} are approved together (${first.waiting.names.join(', ')}): \`campaign approve ${campaign}\`; some are left out with \`campaign reject ${campaign} NAME... --reason TEXT\` or --edit FILE`,
  );
}

/** What is decided, for people. */
function subjectOf({ approval: { waiting }, names }: Chosen): string {
  if (waiting.what === 'environment') return `the environment of ${waiting.names[0]}, round ${waiting.round}`;
  if (!names) return waiting.names.join(', ');
  const left = waiting.names.filter((one) => !names.includes(one));
  return `${names.join(', ')} (the campaign goes on with ${left.join(', ') || 'none'})`;
}

const subjectsOf = (pending: readonly PendingApproval[]): string =>
  pending.map((approval) => subjectOf({ approval })).join('; ');

type Edit = Pick<Approval, 'capabilities' | 'module'>;

/** Reads `--edit FILE`: a list of capabilities, or the text of a module. @throws UserError for a wrong file, before anything is decided. */
async function readEdit(file: string, { environment }: PendingApproval, store: ArtifactStore): Promise<Edit> {
  if (!environment) {
    const fix = 'it is a list of capabilities, each {name, definition}: those to go on with';
    return { capabilities: readInput({ file, named: `--edit ${file}`, schema: editedCapabilitiesSchema, fix }) };
  }
  const { candidate, rounds } = environment;
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new UserError(`--edit ${file} cannot be read: ${messageOf(error)}`);
  });
  if (text.trim() === '') throw new UserError(`${file} is empty; it is to hold the environment of ${candidate.name}`);
  const module = await store.put({
    key: `edited-module/${sha256(text)}`,
    producer: 'campaign approve --edit',
    inputs: rounds.slice(-1).map((round) => round.module),
    mediaType: 'text/javascript',
    body: text,
  });
  return { module };
}

/** A worker answers at once, unless it is being started. */
const ANSWER_MS = 30_000;

/** What was decided, in words. The decision names the content that was looked at, so that the workflow refuses it for anything else. */
async function decide(temporal: Temporal, chosen: Chosen, answer: Answer): Promise<string> {
  const { workflowId, waiting } = chosen.approval;
  const handle = temporal.client.workflow.getHandle(workflowId);
  const subject = subjectOf(chosen);
  try {
    const args: [Answer] = [{ ...answer, of: waiting.of }];
    const { kind } = await temporal.client.withDeadline(Date.now() + ANSWER_MS, () =>
      handle.executeUpdate<Decision, [Answer]>(updateNames.decide, { args }),
    );
    return `${kind === 'approve' ? 'approved' : 'rejected'}: ${subject}`;
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError)
      throw new UserError(`${subject}: ${messageOf(error.cause ?? error)}`);
    if (error instanceof WorkflowNotFoundError) throw new UserError(`${subject} waits no more: its workflow has ended`);
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
      throw new UserError(
        `${subject}: no worker answered within ${ANSWER_MS / 1000} s; \`campaign status NAME\` shows whether it still waits`,
      );
    throw error;
  }
}

export interface ShownApproval {
  view: ApprovalView;
  /** The command that approves it, and how it is rejected or edited. */
  commands: string[];
  /** A copy of what waits, to be edited. */
  file: string;
}

async function viewOf(
  { waiting, capabilities, environment }: ApprovalRequest,
  store: ArtifactStore,
): Promise<ApprovalView> {
  if (environment) return { waiting, environment: await environmentView({ store, ...environment }) };
  if (!capabilities) throw new Error(`nothing is shown of what waits for approval: ${waiting.names.join(', ')}`);
  const { rollouts, selection } = capabilities;
  return { waiting, capabilities: await capabilitiesView({ store, rollouts, result: selection }) };
}

/** Writes under approval/ the texts that `--edit` takes back. A copy that is there already may have been edited: it stays. */
async function showApprovals(
  pending: readonly PendingApproval[],
  o: { campaign: string; folder: string; store: ArtifactStore },
): Promise<ShownApproval[]> {
  const { campaign, folder, store } = o;
  const copies = join(folder, 'approval');
  mkdirSync(copies, { recursive: true });
  const shown: ShownApproval[] = [];
  for (const one of pending) {
    const { waiting, environment } = one;
    const view = await viewOf(one, store);
    const version = waiting.of.slice(0, 8);
    let copy: { name: string; text: string };
    if (environment) {
      const module = environment.rounds.at(-1)?.module;
      const text = module ? (await store.read(module)).toString('utf8') : '';
      copy = { name: `${environment.candidate.name}-${version}.js`, text };
    } else {
      const selected = one.capabilities?.selection.selected ?? [];
      const list = selected.map(({ candidate: { name, definition } }) => ({ name, definition }));
      const text = `# To go on with: word definitions anew; what is not in the list is left out.\n${stringify(list)}`;
      copy = { name: `capabilities-${version}.yaml`, text };
    }
    const file = join(copies, copy.name);
    if (!existsSync(file)) writeFileSync(file, copy.text);
    const commands = approvalCommands(campaign, waiting);
    shown.push({ view, commands: [commands.approve, `${commands.approve} --edit ${file}`, commands.reject], file });
  }
  return shown;
}

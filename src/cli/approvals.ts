/**
 * What of a campaign waits for a person's approval: its selected capabilities together, or environments of its children. Finds it, shows it,
 * picks what a command line names, and gives the decision to the workflow.
 */
import {
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { sha256 } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import {
  type Answer,
  type Approval,
  type Decision,
  editedCapabilitiesSchema,
  type Rejection,
} from '../domain/approval';
import { type ApprovalView, capabilitiesView, environmentView } from '../report/build/approval';
import { approvalHtml, type Waits } from '../report/sections/approval';
import { type Asked, queryNames, updateNames, workflowIds } from '../workflows/messages';
import { messageOf, UserError } from './errors';
import type { Temporal } from './temporal';
import { takeSnapshot } from './watch/snapshot';

export interface PendingApproval extends Asked {
  /** The workflow that waits. */
  workflowId: string;
}

/** Names everything that waits, on the command line. */
const ALL = 'all';
/** A worker answers at once, unless it is being started. */
const ANSWER_MS = 30_000;

/** @throws UserError if the campaign does not run, or no worker is there to answer. */
export async function pendingApprovals(temporal: Temporal, name: string): Promise<PendingApproval[]> {
  const { status, progress, children } = await takeSnapshot(temporal, name);
  if (status !== 'RUNNING')
    throw new UserError(
      `campaign ${name} does not run (${status.toLowerCase()}): nothing of it waits for approval; \`campaign run FILE\` goes on with one that is not finished`,
    );
  if (!progress)
    throw new UserError(
      `no worker answers for campaign ${name}, so that nothing can be decided; \`campaign run FILE\` starts them`,
    );
  const waiting = [
    ...(progress.waiting ? [workflowIds.campaign(name)] : []),
    ...children.flatMap((child) => (child.progress?.waiting ? [child.workflowId] : [])),
  ];
  const answers = await Promise.all(
    waiting.map(async (workflowId) => {
      const asked = await temporal.client.workflow.getHandle(workflowId).query<Asked | null>(queryNames.approval);
      return asked ? [{ ...asked, workflowId }] : [];
    }),
  );
  return answers.flat();
}

/** What is decided, for people. */
export const subjectOf = ({ waiting: { what, names, round } }: Asked): string =>
  what === 'capabilities' ? names.join(', ') : `the environment of ${names[0]}, round ${round}`;

const subjectsOf = (pending: readonly PendingApproval[]): string => pending.map(subjectOf).join('; ');

interface Choice {
  campaign: string;
  pending: PendingApproval[];
}

/** What `approve` is about: all that waits, or one environment. @throws UserError if the command line does not name exactly what is decided. */
export function chooseToApprove(o: Choice & { what?: string | undefined; edits: boolean }): PendingApproval[] {
  const { campaign, pending, what, edits } = o;
  const [first, second] = pending;
  if (!first) throw nothingWaits(campaign);
  if (what === undefined || what === ALL) {
    if (edits && second)
      throw new UserError(`--edit is of one: ${subjectsOf(pending)} wait for approval; name one of them`);
    return pending;
  }
  const environment = environmentOf(pending, what);
  if (environment) return [environment];
  if (first.waiting.what === 'capabilities' && first.waiting.names.includes(what))
    throw new UserError(
      `the selected capabilities of ${campaign} are approved together (${first.waiting.names.join(', ')}): \`campaign approve ${campaign}\`; some are left out with \`campaign reject ${campaign} NAME... --reason TEXT\` or --edit FILE`,
    );
  throw notWaiting(what, pending);
}

interface ChosenRejection {
  approval: PendingApproval;
  /** Capabilities to leave out; undefined for all, and of an environment. */
  names?: string[];
}

/** What `reject` is about. @throws UserError if it names something that does not wait. */
export function chooseToReject({ campaign, pending, what }: Choice & { what: readonly string[] }): ChosenRejection[] {
  const [first] = pending;
  if (!first) throw nothingWaits(campaign);
  if (what.includes(ALL)) {
    if (what.length > 1) throw new UserError(`"${ALL}" is all that waits: name nothing beside it`);
    return pending.map((approval) => ({ approval }));
  }
  if (first.waiting.what === 'capabilities') {
    for (const name of what) if (!first.waiting.names.includes(name)) throw notWaiting(name, pending);
    return [{ approval: first, names: [...what] }];
  }
  return what.map((name) => {
    const approval = environmentOf(pending, name);
    if (!approval) throw notWaiting(name, pending);
    return { approval };
  });
}

const environmentOf = (pending: readonly PendingApproval[], name: string): PendingApproval | undefined =>
  pending.find(({ waiting }) => waiting.what === 'environment' && waiting.names.includes(name));

const nothingWaits = (campaign: string): UserError =>
  new UserError(`nothing of campaign ${campaign} waits for approval`);

const notWaiting = (name: string, pending: readonly PendingApproval[]): UserError =>
  new UserError(`${name} does not wait for approval; what waits: ${subjectsOf(pending)}`);

type Edit = Pick<Approval, 'capabilities' | 'module'>;

/** Reads `--edit FILE`: a list of capabilities, or the text of a module. @throws UserError for a wrong file, before anything is decided. */
export async function readEdit(o: { file: string; approval: PendingApproval; store: ArtifactStore }): Promise<Edit> {
  const { file, approval, store } = o;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UserError(`--edit: cannot read ${file} (${messageOf(error)})`);
  }
  if (!approval.environment) return { capabilities: parseCapabilities(text, file) };
  const { candidate, rounds } = approval.environment;
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

function parseCapabilities(text: string, file: string): NonNullable<Approval['capabilities']> {
  let value: unknown;
  try {
    value = parse(text);
  } catch (error) {
    throw new UserError(`${file} is not YAML: ${messageOf(error)}`);
  }
  const parsed = editedCapabilitiesSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const at = issue?.path.map(String).join('.') ?? '';
  throw new UserError(
    `${file}: ${[at, issue?.message].filter(Boolean).join(': ')}; it is a list of capabilities, each {name, definition}: those to go on with`,
  );
}

export const approve = (temporal: Temporal, approval: PendingApproval, edit: Edit): Promise<Decision> =>
  decide({ temporal, approval, answer: { kind: 'approve', of: approval.waiting.of, ...edit } });

export const reject = (
  temporal: Temporal,
  approval: PendingApproval,
  rejection: Pick<Rejection, 'names' | 'reason'>,
): Promise<Decision> =>
  decide({ temporal, approval, answer: { kind: 'reject', of: approval.waiting.of, ...rejection } });

/** The decision names the content that was looked at, so that the workflow refuses it for anything else. */
async function decide(o: { temporal: Temporal; approval: PendingApproval; answer: Answer }): Promise<Decision> {
  const { temporal, approval, answer } = o;
  const handle = temporal.client.workflow.getHandle(approval.workflowId);
  try {
    return await temporal.client.withDeadline(Date.now() + ANSWER_MS, () =>
      handle.executeUpdate<Decision, [Answer]>(updateNames.decide, { args: [answer] }),
    );
  } catch (error) {
    const subject = subjectOf(approval);
    if (error instanceof WorkflowUpdateFailedError)
      throw new UserError(`${subject}: ${messageOf(error.cause ?? error)}`);
    if (error instanceof WorkflowNotFoundError) throw new UserError(`${subject} waits no more: its workflow has ended`);
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
      throw new UserError(
        `${subject}: no worker answered within ${ANSWER_MS / 1000} s; \`campaign approvals\` shows whether it still waits`,
      );
    throw error;
  }
}

interface ShownApproval extends Waits {
  /** A copy of what waits, to be edited. */
  file: string;
}

/**
 * Writes approval.html, and under approval/ the texts that `--edit` takes back. A copy that is there already is not written over: somebody may
 * have edited it.
 */
export async function showApprovals(
  pending: readonly PendingApproval[],
  o: { campaign: string; folder: string; store: ArtifactStore },
): Promise<{ shown: ShownApproval[]; page: string }> {
  const { campaign, folder, store } = o;
  const copies = join(folder, 'approval');
  mkdirSync(copies, { recursive: true });
  const shown: ShownApproval[] = [];
  for (const approval of pending) {
    const copy = await editableCopy(approval, store);
    const file = join(copies, copy.name);
    if (!existsSync(file)) writeFileSync(file, copy.text);
    shown.push({ view: await viewOf(approval, store), commands: commandsFor(approval, { campaign, file }), file });
  }
  const page = join(folder, 'approval.html');
  writeFileSync(page, approvalHtml({ campaign, at: new Date().toISOString(), waits: shown }));
  return { shown, page };
}

async function viewOf(approval: PendingApproval, store: ArtifactStore): Promise<ApprovalView> {
  const { waiting, capabilities, environment } = approval;
  if (environment) return { waiting, environment: await environmentView({ store, ...environment }) };
  if (!capabilities) throw new Error(`nothing is shown of what waits for approval: ${waiting.names.join(', ')}`);
  const { rollouts, selection } = capabilities;
  return { waiting, capabilities: await capabilitiesView({ store, rollouts, found: selection }) };
}

async function editableCopy(
  { waiting, capabilities, environment }: PendingApproval,
  store: ArtifactStore,
): Promise<{ name: string; text: string }> {
  const version = waiting.of.slice(0, 8);
  const module = environment?.rounds.at(-1)?.module;
  if (environment && module)
    return { name: `${environment.candidate.name}-${version}.js`, text: (await store.read(module)).toString('utf8') };
  const selected = capabilities?.selection.selected ?? [];
  const list = selected.map(({ candidate: { name, definition } }) => ({ name, definition }));
  return {
    name: `capabilities-${version}.yaml`,
    text: `# To go on with: word definitions anew; what is not in the list is left out.\n${stringify(list)}`,
  };
}

function commandsFor({ waiting, environment }: PendingApproval, o: { campaign: string; file: string }): string[] {
  const { campaign, file } = o;
  const name = environment ? ` ${waiting.names[0]}` : '';
  return [
    `campaign approve ${campaign}${name}`,
    `campaign approve ${campaign}${name} --edit ${file}`,
    `campaign reject ${campaign}${name || ' NAME...'} --reason TEXT`,
  ];
}

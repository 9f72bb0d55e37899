/** Approvals of a campaign: shows, selects and decides what waits, which is all selected capabilities together or the environments of its children. */
import { WorkflowUpdateFailedError } from '@temporalio/client';
import type { ArtifactStore } from '../store/store';
import type { Answer, Decision } from '../domain/approval';
import { reportedRound } from '../report/build/capabilities';
import { selectionOf } from '../report/build/selection';
import type { ApprovalView } from '../report/capability-model';
import type { GivenDecision } from '../view/app';
import { type ApprovalRequest, queryNames, updateNames, workflowIds } from '../workflows/messages';
import { invalidOption, messageOf, UserError } from './errors';
import type { CommonOptions } from './options';
import { type Temporal, withTemporal } from './temporal';
import { takeSnapshot } from './watch/snapshot';

interface PendingApproval extends ApprovalRequest {
  /** The workflow that waits. */
  workflowId: string;
}

/** Returns the pending approvals for display; none if the campaign does not run, or no worker answers. */
export async function shownApprovals(
  temporal: Temporal,
  campaign: string,
  store: ArtifactStore,
): Promise<ApprovalView[]> {
  const pending = await pendingApprovals(temporal, campaign).catch((error: unknown) => {
    if (error instanceof UserError) return [];
    throw error;
  });
  return Promise.all(
    pending.map(async ({ waiting, capabilities, environment }) => {
      if (environment) {
        const { candidate, rounds } = environment;
        const source = (await store.read(rounds.at(-1)!.module)).toString('utf8');
        const reported = rounds.map((round) => reportedRound(candidate.name, round));
        return { waiting, environment: { candidate, rounds: reported, source } };
      }
      const { rollouts, selection } = capabilities!;
      return { waiting, selection: await selectionOf({ store, rollouts, result: selection }) };
    }),
  );
}

/** `campaign approve`. */
export const approve = async (campaign: string, named: string | undefined, options: CommonOptions): Promise<string> =>
  (await decideOn(campaign, { verb: 'approve', what: named === undefined ? [] : [named] }, options)).join('\n');

/** `campaign reject`. */
export const reject = async (campaign: string, what: string[], options: CommonOptions & { reason: string }) =>
  (await decideOn(campaign, { verb: 'reject', what, reason: options.reason }, options)).join('\n');

/** `of`: digests of the approvals that a page has shown; newer ones are not decided. @returns messages about the decisions. */
export async function decideOn(
  campaign: string,
  { verb, what, of, reason = '' }: Omit<GivenDecision, 'of'> & { of?: string[] },
  options: CommonOptions,
): Promise<string[]> {
  if (verb === 'reject' && reason.trim() === '') throw invalidOption('--reason', 'blank', 'say why');
  return withTemporal(options, async (temporal) => {
    const all = await pendingApprovals(temporal, campaign);
    const pending = all.filter(({ waiting }) => of === undefined || of.includes(waiting.of));
    const decided: string[] = [];
    for (const one of choose({ campaign, pending, what, verb })) {
      const rejection = { kind: 'reject', reason, ...(one.names && { names: one.names }) } as const;
      decided.push(await decide(temporal, one, verb === 'approve' ? { kind: verb } : rejection));
    }
    return decided;
  });
}

/** @throws UserError if the campaign does not run, or no worker is there to answer. */
async function pendingApprovals(temporal: Temporal, name: string): Promise<PendingApproval[]> {
  const { status, progress, children } = await takeSnapshot(temporal, name);
  if (status !== 'RUNNING')
    throw new UserError(
      'not_running',
      'campaign',
      `campaign ${name} does not run (${status.toLowerCase()}): it has no pending approvals; \`campaign run FILE\` continues an unfinished campaign`,
    );
  if (!progress)
    throw new UserError(
      'unavailable',
      'worker',
      `no worker answers for campaign ${name}, so that nothing can be decided; \`campaign run FILE\` starts them`,
    );
  const waiting = [{ workflowId: workflowIds.campaign(name), progress }, ...children].filter(
    (one) => one.progress?.waiting,
  );
  const answers = await Promise.all(
    waiting.map(async ({ workflowId }) => {
      const handle = temporal.client.workflow.getHandle(workflowId);
      const asked = await handle.query<ApprovalRequest | null>(queryNames.approval);
      return asked ? [{ ...asked, workflowId }] : [];
    }),
  );
  return answers.flat();
}

interface Chosen {
  approval: PendingApproval;
  /** Capabilities to leave out; undefined for all, and of an environment. */
  names?: string[];
}

/** Returns the names to decide on: all without a name, or by the name `all`. @throws UserError if the names are not exactly what can be decided. */
function choose(o: { campaign: string; pending: PendingApproval[]; what: string[]; verb: string }): Chosen[] {
  const { campaign, pending, what, verb } = o;
  const [first] = pending;
  if (!first) throw new UserError('not_found', 'approval', `nothing of campaign ${campaign} waits for approval`);
  if (what.length === 0 || (what.length === 1 && what[0] === 'all')) return pending.map((approval) => ({ approval }));
  const approvals = what.map((name) => {
    const approval = pending.find(({ waiting }) => waiting.names.includes(name));
    if (approval) return { approval };
    const waits = pending.map((one) => subjectOf({ approval: one })).join('; ');
    throw new UserError('not_found', 'what', `${name} does not wait for approval; what waits: ${waits}`);
  });
  if (first.waiting.what === 'environment') return approvals;
  if (first.waiting.names.every((name) => what.includes(name))) return [{ approval: first }];
  if (verb === 'reject') return [{ approval: first, names: what }];
  throw new UserError(
    'invalid_argument',
    'what',
    `the selected capabilities of ${campaign} are approved together (${first.waiting.names.join(', ')}): \`campaign approve ${campaign}\`; some are left out with \`campaign reject ${campaign} NAME... --reason TEXT\``,
  );
}

/** Names the subject of a decision in a message. */
function subjectOf({ approval: { waiting }, names }: Chosen): string {
  if (waiting.what === 'environment') return `the environment of ${waiting.names[0]}, round ${waiting.round}`;
  if (!names) return waiting.names.join(', ');
  const left = waiting.names.filter((one) => !names.includes(one));
  return `${names.join(', ')} (the campaign continues with ${left.join(', ') || 'none'})`;
}

/** A worker has just answered a query. */
const ANSWER_MS = 30_000;

/** Returns a message about the decision. The decision names the digest of the shown content, and the workflow rejects it for other content. */
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
    if (!(error instanceof WorkflowUpdateFailedError)) throw error;
    throw new UserError('refused', 'decision', `${subject}: ${messageOf(error.cause ?? error)}`);
  }
}

/** Gives a decision to a workflow. Invariant: it is of what was looked at; why it was refused is told in the workflow's words. */
import {
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import type { Approval, Decision, Rejection } from '../../domain/approval';
import { updateNames } from '../../workflows/messages';
import { messageOf, UserError } from '../errors';
import type { Temporal } from '../temporal';
import { subjectText, type AskedOf } from './asked';

/** A worker answers at once, unless it is being started. */
const ANSWER_MS = 30_000;

export const approve = (temporal: Temporal, asked: AskedOf, edit: Pick<Approval, 'capabilities' | 'module'>) =>
  update({ temporal, asked, name: updateNames.approve, input: { of: asked.waiting.of, ...edit } });

export const reject = (temporal: Temporal, asked: AskedOf, rejection: Pick<Rejection, 'names' | 'reason'>) =>
  update({ temporal, asked, name: updateNames.reject, input: { of: asked.waiting.of, ...rejection } });

async function update(o: {
  temporal: Temporal;
  asked: AskedOf;
  name: keyof typeof updateNames;
  input: Approval | Rejection;
}): Promise<Decision> {
  const { temporal, asked, name, input } = o;
  const handle = temporal.client.workflow.getHandle(asked.workflowId);
  try {
    return await temporal.client.withDeadline(Date.now() + ANSWER_MS, () =>
      handle.executeUpdate<Decision, [Approval | Rejection]>(name, { args: [input] }),
    );
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError)
      throw new UserError(`${subjectText(asked)}: ${messageOf(error.cause ?? error)}`);
    if (error instanceof WorkflowNotFoundError)
      throw new UserError(`${subjectText(asked)} waits no more: its workflow has ended`);
    if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError)
      throw new UserError(
        `${subjectText(asked)}: no worker answered within ${ANSWER_MS / 1000} s; \`campaign approvals\` shows whether it still waits`,
      );
    throw error;
  }
}

/** What waits for approval in a campaign: its selected capabilities, or environments of its children. */
import type { Asked } from '../../workflows/messages';
import { queryNames, workflowIds } from '../../workflows/messages';
import { UserError } from '../errors';
import type { Temporal } from '../temporal';
import { takeSnapshot } from '../watch/snapshot';

export interface AskedOf extends Asked {
  /** Whose question it is. */
  workflowId: string;
}

/** @throws UserError if the campaign does not run, or no worker is there to answer. */
export async function whatWaits(temporal: Temporal, name: string): Promise<AskedOf[]> {
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
export const subjectText = ({ waiting: { what, names, round } }: Asked): string =>
  what === 'capabilities' ? names.join(', ') : `the environment of ${names[0]}, round ${round}`;

/** Words for the capabilities, where they wait. */
export const ALL = 'all';

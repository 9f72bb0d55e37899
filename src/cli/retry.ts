/** Starts a campaign that has ended once more, to do again what failed in it. Invariant: everything else is found in the store by its key. */
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import type { EndedArm, EndedCapability } from '../domain/results';
import { childFailureIn, type CampaignInput, type CampaignResult } from '../workflows/messages';
import { UserError } from './errors';
import { campaignState, restartCampaign, type CampaignState, type Temporal } from './temporal';

type Ended = EndedCapability | EndedArm;

/** `only`: a capability or an arm, if not all. @returns what is done again; empty if nothing failed. @throws UserError if it can't be. */
export async function retry(temporal: Temporal, { name, only }: { name: string; only?: string | undefined }) {
  const state = await campaignState(temporal, name);
  if (!state) throw new UserError(`there is no campaign ${name} here; \`campaign status\` lists those that there are`);
  if (state.status === 'RUNNING')
    throw new UserError(`campaign ${name} is running; what fails in it can be done again when it has ended`);
  const { campaign, until, force } = await inputOf(temporal, name, state);
  const input: CampaignInput = { campaign, ...(until && { until }), ...(force && { force }) };
  if (state.status !== 'COMPLETED') {
    if (only !== undefined)
      throw new UserError(
        `campaign ${name} has ended as ${state.status.toLowerCase()} as a whole: \`campaign retry ${name}\` starts it again`,
      );
    await restartCampaign(temporal, { input, state });
    return [name];
  }
  const { failed, children } = (await temporal.client.workflow.getHandle(name).result()) as CampaignResult;
  if (only === undefined) {
    if (failed.length > 0) await restartCampaign(temporal, { input, state });
    return failed;
  }
  const child = children.find((one) => one.name === only);
  if (!child)
    throw new UserError(
      `campaign ${name} has no capability or arm ${only}; it has ${children.map((one) => one.name).join(', ') || 'none'}`,
    );
  if (child.status !== 'failed') return [];
  const others = children.filter((one) => one !== child);
  const kept = (await Promise.all(others.map(({ workflowId }) => cameTo(temporal, workflowId)))).flatMap(
    (one) => one ?? [],
  );
  await restartCampaign(temporal, { input: { ...input, kept }, state });
  return [only];
}

async function inputOf({ client }: Temporal, name: string, { runId }: CampaignState): Promise<CampaignInput> {
  const { history } = await client.workflowService.getWorkflowExecutionHistory({
    ...{ namespace: client.options.namespace, execution: { workflowId: name, runId }, maximumPageSize: 1 },
  });
  const [payload] = history?.events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
  return defaultPayloadConverter.fromPayload<CampaignInput>(payload as Payload);
}

/** What a child came to, whether it failed or not; undefined of one that was never started. */
async function cameTo({ client }: Temporal, workflowId: string): Promise<Ended | undefined> {
  try {
    return (await client.workflow.getHandle(workflowId).result()) as Ended;
  } catch (error) {
    return childFailureIn<Ended>((error as Error).cause);
  }
}

/** One child workflow of the capability stage, run to its result. Invariant: one that fails for good has a result that says so. */
import { ParentClosePolicy, sleep, startChild, workflowInfo } from '@temporalio/workflow';
import {
  defineSearchAttributeKey,
  TypedSearchAttributes,
  WorkflowExecutionAlreadyStartedError,
} from '@temporalio/common';
import { armName, type Campaign } from '../domain/campaign';
import type { EndedArm, EndedCapability } from '../domain/results';
import type { ArmInput } from './arm';
import type { CapabilityInput } from './capability';
import { endedIn, reasonOf, resultingReason } from './failure';
import { searchAttributeNames, workflowIds } from './messages';
import type { Run } from './run';

const campaignAttribute = defineSearchAttributeKey(searchAttributeNames.campaign, 'KEYWORD');
const capabilityAttribute = defineSearchAttributeKey(searchAttributeNames.capability, 'KEYWORD');

export async function startCapability(run: Run, input: CapabilityInput): Promise<EndedCapability> {
  const { name, parts } = input.candidate;
  const failed = (reason: string, workflowId: string): EndedCapability => {
    return { name, workflowId, status: 'failed', ...(parts && { parts }), reason };
  };
  return child(run, { kind: 'capability', name, args: [input], failed });
}

export async function startArm(run: Run, input: ArmInput): Promise<EndedArm> {
  const { kind } = input.spec;
  const name = armName(input.spec);
  const failed = (reason: string, workflowId: string): EndedArm => {
    return { name, kind, workflowId, status: 'failed', routable: false, reason };
  };
  return child(run, { kind: 'arm', name, args: [input], failed });
}

interface Child<R> {
  /** Also the type of its workflow. */
  kind: 'capability' | 'arm';
  name: string;
  args: unknown[];
  failed: (reason: string, workflowId: string) => R;
}

/** Runs a child to its result, or makes one of its failure; one whose result is kept is not run. */
async function child<R extends EndedCapability | EndedArm>(run: Run, o: Child<R>): Promise<R> {
  const { kind, name } = o;
  const { status, kept } = run;
  const workflowId = workflowIds[kind](workflowInfo().workflowId, name);
  status.child(workflowId, kind, name, 'waiting', '');
  const known = kept.find((one) => one.workflowId === workflowId) as R | undefined;
  const result = known ?? (await ended(run, workflowId, o));
  const done = result.status === 'trained' || result.status === 'done';
  status.child(workflowId, kind, name, done ? 'done' : 'failed', result.reason ?? '');
  return result;
}

async function ended<R>({ config, status }: Run, workflowId: string, o: Child<R>): Promise<R> {
  const { kind, name, args, failed } = o;
  try {
    const options = { ...childOptions(config, { workflowId, kind, name }), args };
    const started = await afterItsEarlierRun(() => status.gate.step(() => startChild(kind, options)));
    // Not sooner: a pause reaches children that run, and there is none before this.
    status.child(workflowId, kind, name, 'running', '');
    return (await started.result()) as R;
  } catch (error) {
    status.child(workflowId, kind, name, 'failed', reasonOf(error));
    return endedIn<R>(error) ?? failed(resultingReason(error), workflowId);
  }
}

const ENDING = { every: '5 seconds', looks: 60 } as const;

/** A campaign that somebody terminated leaves children behind that are still ending: they save what they have. They are waited for. */
async function afterItsEarlierRun<R>(start: () => Promise<R>): Promise<R> {
  for (let look = 1; ; look++) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError) || look === ENDING.looks) throw error;
      await sleep(ENDING.every);
    }
  }
}

const childOptions = (campaign: Campaign, o: { workflowId: string; kind: string; name: string }) => ({
  workflowId: o.workflowId,
  parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
  staticSummary: `${o.kind}: ${o.name}`,
  typedSearchAttributes: new TypedSearchAttributes([
    { key: campaignAttribute, value: campaign.name },
    { key: capabilityAttribute, value: o.name },
  ]),
});

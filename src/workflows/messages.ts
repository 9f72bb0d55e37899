/** The interface of the workflows: inputs, results, updates, queries, search attributes, memo and ids. */
import { defineSearchAttributeKey } from '@temporalio/common';
import type { WrittenReport } from '../activities/types';
import type { Waiting } from '../domain/approval';
import type { ArtifactRef } from '../domain/artifacts';
import type { BrokenCause } from '../domain/rollout';
import type { Campaign, Stage } from '../domain/campaign';
import type { Candidate } from '../domain/capability';
import type { CampaignChild, CampaignOutcome, SelectionResult } from '../domain/results';
import type { SynthesisRound } from '../domain/calibration';

export interface CampaignInput {
  campaign: Campaign;
  /** The last stage to run. */
  until?: Stage;
  force?: boolean;
}

export interface CampaignResult extends WrittenReport {
  status: CampaignOutcome;
  stoppedAfter?: Stage;
  children: (CampaignChild & { status: CampaignOutcome })[];
  failed: string[];
}

export type StepStatus = 'waiting' | 'running' | CampaignOutcome;

export interface CampaignProgress {
  campaign: string;
  seed: number;
  stages: { name: Stage; status: StepStatus; detail: string }[];
  children: (CampaignChild & { status: StepStatus; detail: string })[];
  /** `causes`: the most frequent ones of broken rollouts. */
  rollouts: { scored: number; broken: number; causes?: BrokenCause[] };
  waiting?: Waiting;
}

export interface ChildProgress {
  name: string;
  phase: 'synthesize' | 'self-test' | 'calibrate' | 'approval' | 'train' | 'validate' | CampaignOutcome;
  round: number;
  detail: string;
  /** Success rates of the calibrations in this round, such as "18%". */
  calibration?: string;
  waiting?: Waiting;
}

/** All that a person needs to decide. */
export interface ApprovalRequest {
  waiting: Waiting;
  capabilities?: { rollouts: ArtifactRef; selection: SelectionResult };
  environment?: { candidate: Candidate; rounds: SynthesisRound[] };
}

/** Prefixed, since a cluster's namespace is shared. */
export const workflowTypes = {
  campaign: 'campaignRun',
  capability: 'campaignCapability',
  arm: 'campaignArm',
} as const;

export const updateNames = { decide: 'decide' } as const;
export const queryNames = { progress: 'progress', approval: 'approval' } as const;

/** Custom search attributes, all Keyword. */
export const searchAttributes = {
  campaign: defineSearchAttributeKey('CampaignName', 'KEYWORD'),
  stage: defineSearchAttributeKey('CampaignStage', 'KEYWORD'),
  child: defineSearchAttributeKey('CampaignChild', 'KEYWORD'),
  /** `approval` while the campaign or child waits for one. */
  attention: defineSearchAttributeKey('CampaignAttention', 'KEYWORD'),
  outcome: defineSearchAttributeKey('CampaignOutcome', 'KEYWORD'),
} as const;

/** The part of a campaign's memo that the workflow writes. `campaign run` reads it to start workers for the pool. */
export interface Memo {
  pool?: string;
}

export const workflowIds = {
  campaign: (name: string): string => name,
  capability: (campaign: string, capability: string): string => `${campaign}/capability/${capability}`,
  arm: (campaign: string, arm: string): string => `${campaign}/arm/${arm}`,
};

/** The inverse of `workflowIds`. */
export function childOf(workflowId: string): CampaignChild {
  const [, kind = 'capability', name = workflowId] = /^[^/]*\/(capability|arm)\/(.*)$/.exec(workflowId) ?? [];
  return { workflowId, kind: kind as CampaignChild['kind'], name };
}

export const CHILD_FAILED = 'ChildFailed';

/** Returns the result that a child's failure carries. */
export function childFailureIn<R>(failure: unknown): R | undefined {
  const { type, details } = (failure ?? {}) as { type?: string; details?: unknown[] };
  return type === CHILD_FAILED ? (details?.[0] as R) : undefined;
}

/** The interface of the workflows: inputs, results, updates, queries, search attributes, memo and ids. Values are small. */
import type { WrittenReport } from '../activities/types';
import type { Waiting } from '../domain/approval';
import type { ArtifactRef } from '../domain/artifacts';
import type { BrokenCause } from '../domain/rollout';
import type { Campaign, Stage } from '../domain/campaign';
import type { Candidate } from '../domain/capability';
import type { CampaignChild, CampaignOutcome, ChildResult, SelectionResult } from '../domain/results';
import type { SynthesisRound } from '../domain/calibration';

export interface CampaignInput {
  campaign: Campaign;
  /** The last stage to run; report.json then holds the results so far. */
  until?: Stage;
  /** Continues with a base model that can't work on the target. */
  force?: boolean;
  /** Results of children of an earlier start; these children are not run again. */
  kept?: ChildResult[];
}

export interface CampaignResult extends WrittenReport {
  status: CampaignOutcome;
  stoppedAfter?: Stage;
  children: (CampaignChild & { status: CampaignOutcome })[];
  /** The steps and children that failed, for display. */
  failed: string[];
}

export type StepStatus = 'waiting' | 'running' | CampaignOutcome;

/** The answer of a campaign to the `progress` query. */
export interface CampaignProgress {
  campaign: string;
  seed: number;
  stages: { name: Stage; status: StepStatus; detail: string }[];
  /** Children in the order of selection; each answers a `progress` query of its own. */
  children: (CampaignChild & { status: StepStatus; detail: string })[];
  /** `causes` are the most frequent ones of broken rollouts; absent if none broke. */
  rollouts: { scored: number; broken: number; causes?: BrokenCause[] };
  /** The selected capabilities, while they wait for approval. */
  waiting?: Waiting;
}

/** The answer of a child to the `progress` query. */
export interface ChildProgress {
  name: string;
  phase: 'synthesize' | 'self-test' | 'calibrate' | 'approval' | 'train' | 'validate' | CampaignOutcome;
  round: number;
  detail: string;
  /** Success rates of the calibrations in this round, such as "18%". */
  calibration?: string;
  /** The child's environment, while it waits for approval. */
  waiting?: Waiting;
}

/** The answer to the `approval` query: the subject with what a person needs to decide; null if nothing waits. */
export interface ApprovalRequest {
  waiting: Omit<Waiting, 'since' | 'reminded'> & Partial<Waiting>;
  capabilities?: { rollouts: ArtifactRef; selection: SelectionResult };
  environment?: { candidate: Candidate; rounds: SynthesisRound[] };
}

/** The names under which index.ts exports the workflows: prefixed, since a cluster's namespace is shared. */
export const workflowTypes = {
  campaign: 'campaignRun',
  capability: 'campaignCapability',
  arm: 'campaignArm',
} as const;

export const updateNames = { decide: 'decide' } as const;
export const queryNames = { progress: 'progress', approval: 'approval' } as const;

/** Custom search attributes (all Keyword), registered with the server before the first campaign. */
export const searchAttributeNames = {
  campaign: 'CampaignName',
  stage: 'CampaignStage',
  /** The capability or arm of a child. */
  child: 'CampaignChild',
  /** `approval` while the campaign or child waits for one. */
  attention: 'CampaignAttention',
  /** The outcome of a campaign or a child. */
  outcome: 'CampaignOutcome',
} as const;

/** The part of a campaign's memo that the workflow writes; `campaign run` writes the rest when it starts the campaign. */
export interface Memo {
  /** The pool whose workers make the rollouts and trainings; set once the campaign is prepared. */
  pool?: string;
}

export const workflowIds = {
  campaign: (name: string): string => name,
  capability: (campaign: string, capability: string): string => `${campaign}/capability/${capability}`,
  arm: (campaign: string, arm: string): string => `${campaign}/arm/${arm}`,
};

/** Returns the child whose workflow has this id; the inverse of `workflowIds`. */
export function childOf(workflowId: string): CampaignChild {
  const [, kind = 'capability', name = workflowId] = /^[^/]*\/(capability|arm)\/(.*)$/.exec(workflowId) ?? [];
  return { workflowId, kind: kind as CampaignChild['kind'], name };
}

/** The type of the failure that a failed child throws. */
export const CHILD_FAILED = 'ChildFailed';

/** Returns the result in the details of such a failure; undefined for any other failure. */
export function childFailureIn<R>(failure: unknown): R | undefined {
  const { type, details } = (failure ?? {}) as { type?: string; details?: unknown[] };
  return type === CHILD_FAILED ? (details?.[0] as R) : undefined;
}

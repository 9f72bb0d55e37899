/** What goes into and out of the workflows: inputs, results, signals, updates, queries, search attributes. Small values only. */
import type { Waiting } from '../domain/approval';
import type { ArtifactRef } from '../domain/artifacts';
import type { BrokenCause } from '../domain/rollout';
import type { Campaign, Stage } from '../domain/campaign';
import type { Candidate } from '../domain/capability';
import type { CampaignChild, CampaignOutcome, ChildResult, SelectionResult } from '../domain/results';
import type { SynthesisRound } from '../domain/calibration';

export interface CampaignInput {
  campaign: Campaign;
  /** Stop after this stage; report.json then holds what there is. */
  until?: Stage;
  /** Go on with a base model that can't work on the target. */
  force?: boolean;
  /** Of an earlier start: children that are not to be done again. */
  kept?: ChildResult[];
}

export interface CampaignResult {
  status: CampaignOutcome;
  stoppedAfter?: Stage;
  /** What came out, in the report's own words. */
  verdict: string;
  /** Path of report.html, where it was written. */
  file: string;
  children: (CampaignChild & { status: CampaignOutcome })[];
  /** What could not be done, for people. */
  failed: string[];
  report: ArtifactRef;
  html: ArtifactRef;
}

export type StepStatus = 'waiting' | 'running' | CampaignOutcome;

/** Answer of the `progress` query of a campaign. */
export interface CampaignProgress {
  campaign: string;
  seed: number;
  stages: { name: Stage; status: StepStatus; detail: string }[];
  /** Children, in the order of selection; their own `progress` query tells more. */
  children: (CampaignChild & { status: StepStatus; detail: string })[];
  /** `causes`: of the broken ones, the most frequent; absent where there is none. */
  rollouts: { scored: number; broken: number; causes?: BrokenCause[] };
  /** The selected capabilities, while they wait for approval. */
  waiting?: Waiting;
}

/** Answer of the `progress` query of a child. */
export interface ChildProgress {
  name: string;
  phase: 'synthesize' | 'self-test' | 'calibrate' | 'approval' | 'train' | 'validate' | CampaignOutcome;
  round: number;
  detail: string;
  /** Of this round: "18%". */
  calibration?: string;
  /** Its environment, while that waits for approval. */
  waiting?: Waiting;
}

/** Answer of the `approval` query: what there is to be looked at before somebody decides; null if nothing waits. */
export interface Asked {
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
  /** How campaigns and their children ended. */
  outcome: 'CampaignOutcome',
} as const;

/** What can be read of a campaign's workflow without a worker, beside what `campaign run` put there when it started it. */
export interface Memo {
  /** Whose workers make its rollouts and trainings, once it is prepared. */
  pool?: string;
}

export const workflowIds = {
  campaign: (name: string): string => name,
  capability: (campaign: string, capability: string): string => `${campaign}/capability/${capability}`,
  arm: (campaign: string, arm: string): string => `${campaign}/arm/${arm}`,
};

/** The child whose workflow has this id: the reverse of `workflowIds`. */
export function childOf(workflowId: string): CampaignChild {
  const [, kind = 'capability', name = workflowId] = /^[^/]*\/(capability|arm)\/(.*)$/.exec(workflowId) ?? [];
  return { workflowId, kind: kind as CampaignChild['kind'], name };
}

/** Type of the failure of a child that has failed. */
export const CHILD_FAILED = 'ChildFailed';

/** What such a child came to; undefined of any other failure. */
export function childFailureIn<R>(failure: unknown): R | undefined {
  const { type, details } = (failure ?? {}) as { type?: string; details?: unknown[] };
  return type === CHILD_FAILED ? (details?.[0] as R) : undefined;
}

/** What goes into and out of the workflows: inputs, results, signals, queries, search attributes, task queues. Small values only. */
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { Stage } from '../domain/stages';

export const taskQueues = { control: 'control', rollouts: 'rollouts', gpu: 'gpu' } as const;

export interface CampaignInput {
  campaign: Campaign;
  /** Stop after this stage; report.json then holds what there is. */
  until?: Stage;
  /** Go on with a base model that can't work on the target. */
  force?: boolean;
}

export interface CampaignResult {
  report: ArtifactRef;
  html: ArtifactRef;
  status: 'completed' | 'stopped_at_stage';
}

export type StepStatus = 'waiting' | 'running' | 'done' | 'failed';

/** Answer of the `progress` query of a campaign. */
export interface CampaignProgress {
  campaign: string;
  seed: number;
  paused: boolean;
  stages: { name: Stage; status: StepStatus; detail: string }[];
  /** Children, in the order of selection; their own `progress` query tells more. */
  children: (ChildRef & { status: StepStatus; detail: string })[];
  rollouts: { scored: number; broken: number };
}

/** Answer of the `progress` query of a child. */
export interface ChildProgress {
  name: string;
  phase: 'synthesize' | 'self-test' | 'calibrate' | 'train' | 'validate' | 'done' | 'failed';
  round: number;
  detail: string;
  paused: boolean;
}

export const signalNames = { pause: 'pause', resume: 'resume' } as const;
export const queryNames = { progress: 'progress' } as const;

/** Custom search attributes (all Keyword), registered with the server before the first campaign. */
export const searchAttributeNames = {
  campaign: 'CampaignName',
  stage: 'CampaignStage',
  capability: 'CampaignCapability',
} as const;

/** What can be read of a campaign's workflow without a worker, beside what `campaign run` put there when it started it. */
export interface Memo {
  paused?: boolean;
}

/** A child as its parent names it. */
export interface ChildRef {
  workflowId: string;
  kind: 'capability' | 'arm';
  name: string;
}

export const workflowIds = {
  campaign: (name: string): string => name,
  capability: (campaign: string, capability: string): string => `${campaign}/capability/${capability}`,
  arm: (campaign: string, arm: string): string => `${campaign}/arm/${arm}`,
};

/** The child whose workflow has this id: the reverse of `workflowIds`. */
export function childOf(workflowId: string): ChildRef {
  const [, kind = 'capability', name = workflowId] = /^[^/]*\/(capability|arm)\/(.*)$/.exec(workflowId) ?? [];
  return { workflowId, kind: kind as ChildRef['kind'], name };
}

/** What goes into and out of the workflows: inputs, results, signals, queries, search attributes, task queues. Small values only. */
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { Stage } from '../domain/stages';

export const taskQueues = { control: 'control', rollouts: 'rollouts', gpu: 'gpu' } as const;

export interface CampaignInput {
  campaign: Campaign;
  /** Stop after this stage; report.json then holds what there is. */
  until?: Stage;
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
  children: { workflowId: string; kind: 'capability' | 'arm'; name: string; status: StepStatus; detail: string }[];
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

export const workflowIds = {
  campaign: (name: string): string => name,
  capability: (campaign: string, capability: string): string => `${campaign}/capability/${capability}`,
  arm: (campaign: string, arm: string): string => `${campaign}/arm/${arm}`,
};

/** Selection, capabilities and trainings in report.json. Invariant: a text is quoted as in the artifact, or states how much is left out. */
import type { Waiting } from '../domain/approval';
import type { ArtifactRef, Figure } from '../domain/artifacts';
import type { CalibrationReport, SelfTest } from '../domain/calibration';
import type { SelectionRule } from '../domain/campaign';
import type { Lacking } from '../domain/capability';
import type { CampaignOutcome } from '../domain/results';

export interface ReportedMessage {
  /** Its index in the trajectory. */
  message: number;
  role: 'system' | 'user' | 'assistant' | 'tool';
  /** The content, then the calls. */
  text: string;
  /** Characters that are left out at its end. */
  missing?: number | undefined;
}

/** A step of a trajectory, as evidence; of a trajectory that is not among the labeled ones only its key is known. */
export interface ReportedCitation {
  /** The rollout's key. */
  rollout: string;
  task?: string | undefined;
  attempt?: number | undefined;
  outcome?: 'failed' | 'passed' | undefined;
  /** Index of the message; absent where the whole trajectory is meant. */
  message?: number | undefined;
  says: string;
  /** Votes of the labeling passes: `lacking in 3 of 6 passes`. */
  votes?: string | undefined;
  /** The message and its neighbours. */
  context: ReportedMessage[];
}

/** Failures that are not the agent's. */
export interface ReportedFaults {
  /** The findings of discovery. */
  found: { of: 'environment' | 'user'; what: string; citations: ReportedCitation[] }[];
  /** Failed trajectories that most passes attribute to it: they are NA everywhere. Absent without passes. */
  counts?: { environment: Figure; user: Figure } | undefined;
  /** The first of these trajectories. */
  examples: ReportedCitation[];
}

/** One version of a synthesized environment. */
export interface ReportedRound {
  round: number;
  selfTest: SelfTest;
  /** The base model on all instances; absent if the self-test failed. Rates are over groups (seeds). */
  calibration?:
    | (Pick<CalibrationReport, 'verdict' | 'reasons'> & {
        meanReward: Figure;
        successRate: Figure;
        informative: Figure;
        /** Names the branches that the verdict covers, if the base has mastered the others. */
        judged?: string | undefined;
      })
    | undefined;
  module: ArtifactRef;
  /** The decision of a person, where the campaign asks for one. */
  decision?: string | undefined;
}

type Curve = { step: number; value: number }[];

/** Curves by finished optimizer step: the mean training reward, and the other curves that the learner reports. */
export interface LearnerCurves {
  points: { step: number; reward: number }[];
  loss?: Curve | undefined;
  kl?: Curve | undefined;
  gradientNorm?: Curve | undefined;
}

export interface ReportedTraining {
  steps: number;
  /** The B matrices of its LoRA are 0 after the last step, so that the adapter is the base model. */
  unchanged?: true | undefined;
  /** All training rollouts, also those after the best step. */
  rollouts: Figure;
  /** From the trainer's metrics; absent where no trainer ran, or without rollouts. */
  rewardCurve?: (LearnerCurves & { from: ArtifactRef[] }) | undefined;
  /**
   * The policies on the way, by what picks the best of them (BEST_BY in domain/results.ts): on held-out seeds of the synthesized environment for a
   * capability, on held-out train tasks of the target for an arm. `rollouts`: training rollouts spent until here.
   */
  iterations: { step: number; rollouts: Figure; successRate: Figure; meanReward: Figure }[];
  bestStep?: number | undefined;
}

/** A sentence, and figure ids or artifact hashes that it rests on: arguments for `campaign show`. */
export interface VerdictSentence {
  text: string;
  behind: string[];
}

interface BeforeAfter {
  before: Figure;
  after: Figure;
  difference?: Figure | undefined;
}

export interface BranchComparison extends BeforeAfter {
  branch: string;
  /** Paired over the seeds. */
  difference: Figure;
}

export interface ReportedCandidate extends Lacking {
  votes: number;
  /** All labeling passes, also those that failed; 0 where the analyst selects outright, without coverage and delta. */
  passes: number;
  /** Mean over the passes that label it; so is delta. */
  coverage?: Figure | undefined;
  delta?: Figure | undefined;
  selected: boolean;
  /** Steps that the analyst cites; of a selected one also failed trajectories that passes label LACKING, else how examples end. */
  citations: ReportedCitation[];
}

export interface ReportedCapability extends Lacking {
  rounds?: ReportedRound[] | undefined;
  /** The target's tasks that it was trained on, by their labels, with those held out among them; `mixed` ones are left out. */
  tasks?: { lacking: Figure; present: Figure; mixed: Figure; heldOut: Figure } | undefined;
  training?: ReportedTraining | undefined;
  validation?:
    | {
        /** Held-out seeds of the synthesized environment, or held-out tasks of `tasks`. */
        synthesized: BeforeAfter;
        /** These seeds also chose between several iterations, so `after` is biased upwards (selection bias). */
        chose?: true | undefined;
        /** The held-out seeds of each branch, where instances have branches. */
        branches?: BranchComparison[] | undefined;
        /** Held-out tasks of the target's train split. */
        target: BeforeAfter;
      }
    | undefined;
  /** The difference to the base on all tasks of the target that it was tried on: held-out, router's and test; each task once. */
  onTarget?: Figure | undefined;
  /** One statement from all figures of a capability; absent if it has no adapter. */
  statement?:
    | (VerdictSentence & {
        /**
         * `helps` and `hurts`: significant on the target; `learned`: on held-out seeds of its own environment alone; `no_gain`: on neither. Derived from
         * `onTarget`, then from `validation.synthesized.difference`.
         */
        verdict: 'helps' | 'hurts' | 'learned' | 'no_gain';
        /** It gains on one branch of its own environment by losing another. */
        rewardHacking: boolean;
      })
    | undefined;
  adapter?: ArtifactRef | undefined;
  /** Absent while its workflow has not ended. */
  status?: CampaignOutcome | undefined;
  reason?: string | undefined;
  workflowId?: string | undefined;
}
/** Before its statement is made. */
export type CapabilityDraft = Omit<ReportedCapability, 'statement'>;

export interface ReportedSelection {
  /** Absent while the selection waits for approval. */
  rule?: SelectionRule | undefined;
  /** The base rollouts that were labeled, by outcome. */
  failed: Figure;
  passed: Figure;
  candidates: ReportedCandidate[];
  /** Labeling passes, also those that failed for good and are left out. */
  passes: number;
  failedPasses: { pass: number; reason: string }[];
  /** Why nothing was selected, where nothing was. */
  reason?: string | undefined;
  /** The decision on the selection, if an approval was needed. */
  decision?: string | undefined;
  /** Absent without faults. */
  faults?: ReportedFaults | undefined;
  from: ArtifactRef[];
}

/** The content of an approval: the selection, or the versions of an environment with the source of the last one. */
export type ApprovalView = { waiting: Waiting } & (
  { selection: ReportedSelection } | { environment: { candidate: Lacking; rounds: ReportedRound[]; source: string } }
);

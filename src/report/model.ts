/**
 * report.json. Invariants: every number that was measured on rollouts is a `Figure` and names the artifacts it came from; a figure id
 * means one figure (it may be repeated, never with another content); stages that the campaign has not reached are absent, never zero. The kind of
 * an arm follows from its role, never from its name.
 */
import { z } from 'zod';
import type { ArtifactRef, Figure } from '../domain/artifacts';
import type { Campaign, Stage } from '../domain/campaign';
import type { Budget, Spent } from '../domain/endpoints';
import type { CampaignOutcome, LeakageCheck } from '../domain/results';
import type { Purpose } from '../domain/rollout';
import type {
  CapabilityDraft,
  ReportedCapability,
  ReportedSelection,
  ReportedTraining,
  VerdictSentence,
} from './capability-model';

export type { VerdictSentence };

/**
 * The role of an arm: the base model, one adapter, merged adapters that the router may choose, the routed policy, the oracle (tasks that any option of the
 * router solves; no policy), or a baseline, which is an arm of the campaign file.
 */
export type Role = 'base' | 'adapter' | 'merged' | 'routed' | 'oracle' | 'baseline';

export interface Arm {
  name: string;
  role: Role;
  /** Kind of a baseline; absent for other rows. */
  kind?: string | undefined;
  /** Capabilities whose environments the baseline trains on. */
  builtOn?: string[] | undefined;
  /** Another row with the same policy: both rows are samples of one policy. */
  sameAs?: string | undefined;
  /** Training rollouts behind the choice of the evaluated policy; for a baseline, those within the budget of the routed policy. */
  trainingRollouts: Figure;
  /** All rollouts that the policy needed, for any purpose except the test. */
  allRollouts: Figure;
  tasks: number;
  trials: number;
  /** Absent for an arm that has not completed. */
  successRate?: Figure | undefined;
  /** pass^2, pass^3 and so on: the rate of tasks that so many trials all solve. Absent with one trial a task. */
  passPower?: Figure[] | undefined;
  /** Paired over tasks; absent for base itself. */
  differenceToBase?: Figure | undefined;
  /** Success on the held-out train tasks of the target. */
  heldOut?: Figure | undefined;
  /** Training of a baseline. */
  training?: ReportedTraining | undefined;
  status: 'completed' | 'failed';
  /** Present if the arm failed. */
  reason?: string | undefined;
}

/** The arms over the tasks of one group; a task may belong to several. */
export interface TaskGroup {
  group: string;
  tasks: number;
  arms: { arm: string; successRate: Figure }[];
}

/** outcomes[task][option]: share of the trials solved; null where no rollout was scored. */
export interface SolverMatrix {
  tasks: string[];
  options: string[];
  outcomes: (number | null)[][];
}

export interface ReportedRouter {
  /** As in the campaign file, e.g. `learned`. */
  kind: string;
  /** The option that gets every conversation, where routing did not help. */
  constant?: string | undefined;
  /** Cross-validated success rates on the train split's outcome matrix. */
  crossValidation: {
    routed: Figure;
    base: Figure;
    bestSingle: { option: string; successRate: Figure };
    oracle: Figure;
    /** Present if several forms of router were compared on the same folds; one of them was kept. */
    forms?: { form: string; successRate: Figure; kept: boolean }[] | undefined;
  };
  helps: boolean;
  /** Why adapters were not added up, where there are several. */
  notMerged?: string | undefined;
  /** Options that it can't choose, since their rollouts could not be made. */
  failed?: { name: string; reason: string }[] | undefined;
  /** Choices on the test split: the share of scored conversations, and their success. */
  choices?: { option: string; share: Figure; successRate: Figure }[] | undefined;
}

/** Which of the evaluated policies to ship, and why. */
export interface Recommendation {
  arm: string;
  /** Which policy to ship, then whether the target is the cheaper place to train. */
  sentences: VerdictSentence[];
  /** The tests that decided: of each candidate against the base model, then of each baseline against the routed policy. `corrected`: Holm's correction for all tests against the same policy. */
  tests: { arm: string; against: string; p: number; corrected: number; isBetter: boolean }[];
}

/** Schema version of report.json. Files of other versions are rejected, and `campaign run` rebuilds the report from the store. */
export const REPORT_VERSION = 6;

export interface Report {
  schemaVersion: typeof REPORT_VERSION;
  campaign: {
    name: string;
    seed: number;
    /** Seed of trainings if it differs from `seed`. */
    trainingSeed?: number | undefined;
    configSha256: string;
    /** The program that wrote the report; `commit` of a checkout only, with `-dirty` if files differed from it. */
    writtenBy?: { version: string; commit?: string | undefined } | undefined;
    /** The campaign file with all defaults. */
    config?: Campaign | undefined;
    baseModel: string;
    target: { name: string; version: string; notes?: string[] | undefined };
    /** In ISO 8601, as is `finishedAt`. */
    startedAt: string;
    finishedAt: string;
    status: CampaignOutcome;
    /** The last stage that the campaign reached. */
    stage: Stage;
    workflowId: string;
  };
  /** Findings of the check of the base model: present if it can't work on the target and the campaign was forced to continue. */
  baseCheck?: { findings: string[]; from: ArtifactRef[] } | undefined;
  rollouts?:
    | {
        scored: Figure;
        broken: Figure;
        /** Failed rollouts by cause: their errors are the same but for names and numbers. The message is that of one of them, at `task`. */
        brokenByError: { errorType: string; message: string; task: string; rollouts: Figure }[];
        byPurpose: {
          purpose: Purpose;
          scored: Figure;
          broken: Figure;
          promptTokens?: Figure | undefined;
          completionTokens?: Figure | undefined;
        }[];
      }
    | undefined;
  /** The base model on the train tasks that it was rolled out on. */
  base?: { successRate: Figure; meanReward: Figure; groups?: TaskGroup[] | undefined } | undefined;
  selection?: ReportedSelection | undefined;
  /** The selected capabilities. */
  capabilities?: ReportedCapability[] | undefined;
  router?: ReportedRouter | undefined;
  arms?: Arm[] | undefined;
  /** The routed policy beside each baseline: `arm` minus `against` on the test tasks. It says nothing about other trainings of them. */
  comparisons?: { arm: string; against: string; difference: Figure }[] | undefined;
  /** Present if the target names groups of tasks. */
  groups?: TaskGroup[] | undefined;
  /** The page does not have it. */
  solverMatrix?: SolverMatrix | undefined;
  leakage?: LeakageCheck | undefined;
  cost?:
    | {
        /** Time between start and end of each stage, with all outages, approvals and queues in it. */
        wallSeconds: { stage: Stage; seconds: number }[];
        /** Seconds of one rollout, without and with its gradient, while it was played; absent where that was not measured. */
        secondsPerRollout?: { rollout?: number | undefined; training?: number | undefined } | undefined;
        promptTokens: Figure;
        completionTokens: Figure;
        /** Costs of all language models, those of users and judges too, from the ledger; absent without requests. */
        languageModel?: { steps: Spent[]; total: Spent; budget: Budget } | undefined;
      }
    | undefined;
  /** Absent where no policy was evaluated. */
  recommendation?: Recommendation | undefined;
  /** Doubts about the results, the most serious first. */
  doubts: VerdictSentence[];
}

/** A report without the parts that are computed from its figures. */
export type ReportDraft = Omit<Report, 'doubts' | 'recommendation' | 'capabilities' | 'schemaVersion'> & {
  capabilities?: CapabilityDraft[] | undefined;
};

const fileSchema = z.looseObject({
  schemaVersion: z.literal(REPORT_VERSION, {
    error: ({ input }) => `the form is ${String(input ?? 'an older one')}, and this program reads ${REPORT_VERSION}`,
  }),
  campaign: z.looseObject({ name: z.string(), finishedAt: z.string() }),
  doubts: z.array(z.object({ text: z.string() })),
});

/** Parses report.json of this version. @throws a SyntaxError or a ZodError for any other text. */
export function parseReport(text: string): Report {
  const report: unknown = JSON.parse(text);
  fileSchema.parse(report);
  return report as Report;
}

/**
 * The selection, the capabilities with their trainings, and what language models found and wrote, in report.json. Invariants: a number that was
 * measured on rollouts is a `Figure`; a text is quoted as it stands in the artifact, or says how much of it is left out; a trajectory that is
 * not among the labeled ones is named and nothing is made up for it.
 */
import { z } from 'zod';
import { artifactRefSchema, figureSchema } from '../domain/artifacts';
import { branchSchema } from '../domain/environment';
import { selectionRuleSchema } from '../domain/campaign';
import { selfTestSchema } from '../domain/calibration';
import { campaignOutcomes } from '../domain/results';

const count = z.number().int().nonnegative();

const reportedMessageSchema = z.strictObject({
  /** Its index in the trajectory. */
  message: count,
  role: z.enum(['system', 'user', 'assistant', 'tool']),
  /** What was said, then the calls. */
  text: z.string(),
  /** Characters that are left out at its end. */
  missing: count.optional(),
});
export type ReportedMessage = z.infer<typeof reportedMessageSchema>;

/** Which trajectory it is. */
const trajectoryFields = {
  /** The rollout's key. */
  rollout: z.string(),
  task: z.string().optional(),
  attempt: count.optional(),
  outcome: z.enum(['failed', 'passed']).optional(),
};

/** A step of a trajectory, as evidence. */
export const reportedCitationSchema = z.strictObject({
  ...trajectoryFields,
  /** Index of the message; absent where the whole trajectory is meant. */
  message: count.optional(),
  /** What is to be seen there. */
  says: z.string(),
  /** The message and its neighbours. */
  context: z.array(reportedMessageSchema),
});
export type ReportedCitation = z.infer<typeof reportedCitationSchema>;

/** A failed trajectory that passes label LACKING: the message that most of them cite, and what one of them says of it. */
const reportedLackingSchema = z.strictObject({
  ...reportedCitationSchema.shape,
  /** Passes that label it LACKING, of those that look at it. */
  lacking: count,
  passes: count,
  /** Passes that cite the message. */
  citing: count,
});

/** Of one candidate, where the analyst cites or gives reasons. */
const reportedEvidenceSchema = z.strictObject({
  capability: z.string(),
  citations: z.array(reportedCitationSchema),
  /** Of a selected one; absent where no pass gives reasons. */
  lacking: z.array(reportedLackingSchema).optional(),
});
export type ReportedEvidence = z.infer<typeof reportedEvidenceSchema>;

/** What failed for no fault of the agent's. */
const reportedFaultsSchema = z.strictObject({
  /** What discovery found. */
  found: z.array(
    z.strictObject({
      of: z.enum(['environment', 'user']),
      what: z.string(),
      citations: z.array(reportedCitationSchema),
    }),
  ),
  /** Failed trajectories that most of the passes put down to it: they are NA everywhere. Absent where no pass was made. */
  trajectories: z
    .strictObject({
      environment: figureSchema,
      user: figureSchema,
      /** The first of them, each with the reason of one pass. */
      examples: z.array(
        z.strictObject({
          ...trajectoryFields,
          of: z.enum(['environment', 'user']),
          reason: z.string(),
          votes: count,
          passes: count,
        }),
      ),
    })
    .optional(),
});
export type ReportedFaults = z.infer<typeof reportedFaultsSchema>;

const step = z.number().int().nonnegative();

/** What the bands are held against. Rates are over groups (seeds). */
const bandFiguresSchema = z.strictObject({
  meanReward: figureSchema,
  successRate: figureSchema,
  allSuccess: figureSchema,
  allZero: figureSchema,
  constant: figureSchema,
  informative: figureSchema,
  rewardStd: figureSchema,
});
export type BandFigures = z.infer<typeof bandFiguresSchema>;

/** One calibration round of a synthesized environment. */
const calibrationFiguresSchema = z.strictObject({
  round: z.number().int().positive(),
  accepted: z.boolean(),
  verdict: z.enum(['accepted', 'too_easy', 'too_hard', 'too_little_contrast']),
  reasons: z.array(z.string()),
  /** Of all seeds. */
  ...bandFiguresSchema.shape,
  /** pass@k by k; a k above the rollouts per seed is absent. */
  passAt: z.record(z.string(), figureSchema),
  /** Where instances have branches. */
  branches: z.array(z.strictObject({ branch: branchSchema, ...bandFiguresSchema.shape })).optional(),
  /** Where the verdict is over some branches alone, since the base has mastered the others. */
  judged: z.strictObject({ text: z.string(), ...bandFiguresSchema.shape }).optional(),
});
export type CalibrationFigures = z.infer<typeof calibrationFiguresSchema>;

/** A policy on the way, by what picks the best of them (BEST_BY in domain/results.ts). */
const reportedIterationSchema = z.strictObject({
  step,
  /** Training rollouts spent until here. */
  rollouts: figureSchema,
  /** On held-out seeds of the synthesized environment for a capability; on held-out train tasks of the target for an arm. */
  successRate: figureSchema,
  meanReward: figureSchema,
  /** Where instances have branches. */
  branches: z
    .array(z.strictObject({ branch: branchSchema, successRate: figureSchema, meanReward: figureSchema }))
    .optional(),
});

const curveSchema = z.array(z.strictObject({ step, value: z.number() }));
const rewardsSchema = z.array(z.strictObject({ step, reward: z.number() }));

export const reportedTrainingSchema = z.strictObject({
  steps: step,
  /** All that it trained, also past the best step. */
  rollouts: figureSchema,
  /** Of those that carried a gradient; absent where each was one row, and no conversation was computed twice. */
  rowsPerRollout: figureSchema.optional(),
  /** Mean training reward by finished optimizer step, from the trainer's metrics; absent where no trainer ran, or without rollouts. */
  rewardCurve: z
    .strictObject({
      points: rewardsSchema,
      /** The same of the rollouts of each branch, where instances have branches. */
      branches: z.array(z.strictObject({ branch: branchSchema, points: rewardsSchema })).optional(),
      /** The learner's other curves, as far as it reports them. */
      loss: curveSchema.optional(),
      kl: curveSchema.optional(),
      gradientNorm: curveSchema.optional(),
      from: z.array(artifactRefSchema),
    })
    .optional(),
  iterations: z.array(reportedIterationSchema),
  bestStep: step.optional(),
});
export type ReportedTraining = z.infer<typeof reportedTrainingSchema>;

/** A sentence, and figure ids or artifact hashes that it rests on: arguments for `campaign show`. */
export const sentenceFields = { text: z.string(), behind: z.array(z.string()) };

const beforeAfterSchema = z.strictObject({
  before: figureSchema,
  after: figureSchema,
  difference: figureSchema.optional(),
});

const branchComparisonSchema = z.strictObject({
  branch: branchSchema,
  before: figureSchema,
  after: figureSchema,
  /** Paired over the seeds. */
  difference: figureSchema,
});
export type BranchComparison = z.infer<typeof branchComparisonSchema>;

const reportedCandidateSchema = z.strictObject({
  name: z.string(),
  definition: z.string(),
  votes: count,
  /** All labeling passes, also those that failed; 0 where the analyst selects outright. */
  passes: count,
  /** Over the passes that have it; so is delta. */
  coverage: figureSchema,
  delta: figureSchema,
  /**
   * Of the passes on its labels, Krippendorff's alpha over trajectories; null where all labels are the same. Absent where the analyst gives
   * neither steps nor reasons: its passes are no readings then.
   */
  agreement: figureSchema.optional(),
  selected: z.boolean(),
});
export type ReportedCandidate = z.infer<typeof reportedCandidateSchema>;

/** One version of a synthesized environment; one that fails its self-test is not calibrated. */
const reportedRoundSchema = z.strictObject({
  round: z.number().int().positive(),
  selfTest: z.strictObject(selfTestSchema.shape),
  calibration: calibrationFiguresSchema.optional(),
  module: artifactRefSchema,
  /** What was decided of it, where somebody was asked. */
  decision: z.string().optional(),
});
export type ReportedRound = z.infer<typeof reportedRoundSchema>;

export const reportedCapabilitySchema = z.strictObject({
  ...reportedCandidateSchema.shape,
  /** The last one of the last round that was calibrated: the accepted one, if one was. */
  calibration: calibrationFiguresSchema.optional(),
  rounds: z.array(reportedRoundSchema).optional(),
  training: reportedTrainingSchema.optional(),
  validation: z
    .strictObject({
      /** Held-out seeds of the synthesized environment. */
      synthesized: beforeAfterSchema,
      /** These seeds chose between several iterations: what is `after` is the best of them, and above what other seeds would show. */
      chose: z.literal(true).optional(),
      /** The held-out seeds of each branch, where instances have branches. */
      branches: z.array(branchComparisonSchema).optional(),
      /** Held-out tasks of the target's train split. */
      target: beforeAfterSchema,
    })
    .optional(),
  /** All tasks of the target that it was tried on, against the base. */
  onTarget: z
    .strictObject({
      batches: z.array(z.strictObject({ of: z.enum(['held_out', 'router', 'test']), difference: figureSchema })),
      /** A task of several batches counts once. */
      all: figureSchema,
    })
    .optional(),
  /** Of one that came to an adapter: one statement from all that is known of it. */
  statement: z
    .strictObject({
      /**
       * `helps` and `hurts`: on the target, significantly; `learned`: on held-out seeds of its own environment alone; `no_gain`: on neither. What
       * decides is `onTarget.all`, then `validation.synthesized.difference`.
       */
      verdict: z.enum(['helps', 'hurts', 'learned', 'no_gain']),
      /** It gains on one branch of its own environment by losing another. */
      rewardHacking: z.boolean(),
      ...sentenceFields,
    })
    .optional(),
  adapter: artifactRefSchema.optional(),
  /** Absent while its workflow has not ended. */
  status: z.enum(campaignOutcomes).optional(),
  reason: z.string().optional(),
  workflowId: z.string().optional(),
});
export type ReportedCapability = z.infer<typeof reportedCapabilitySchema>;
/** Before its statement is made. */
export type CapabilityDraft = Omit<ReportedCapability, 'statement'>;

export const reportedSelectionSchema = z.strictObject({
  rule: selectionRuleSchema,
  /** The base rollouts that were labeled, by outcome. */
  failed: figureSchema,
  passed: figureSchema,
  candidates: z.array(reportedCandidateSchema),
  /** Labeling passes, also those that failed for good and are left out. */
  passes: count,
  failedPasses: z.array(z.strictObject({ pass: count, reason: z.string() })),
  /** Why nothing was selected, where nothing was. */
  reason: z.string().optional(),
  /** What was decided of the selected ones, where somebody was asked. */
  decision: z.string().optional(),
  /** Where the analyst cites steps or gives reasons. */
  evidence: z.array(reportedEvidenceSchema).optional(),
  /** Where there are any. */
  faults: reportedFaultsSchema.optional(),
  from: z.array(artifactRefSchema),
});
export type ReportedSelection = z.infer<typeof reportedSelectionSchema>;

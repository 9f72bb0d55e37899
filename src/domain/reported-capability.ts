/** The selection and the selected capabilities in report.json. Invariant: a number that was measured on rollouts is a `Figure`. */
import { z } from 'zod';
import { artifactRefSchema } from './artifacts';
import { selectionRuleSchema } from './campaign';
import { branchSchema } from './environment';
import { figureSchema } from './figure';
import {
  reportedEpisodeSchema,
  reportedEvidenceSchema,
  reportedFaultsSchema,
  reportedVersionSchema,
} from './reported-evidence';
import { calibrationFiguresSchema, reportedTrainingSchema } from './reported-training';
import { selfTestSchema } from './calibration';

const count = z.number().int().nonnegative();

/** A sentence, and figure ids or artifact hashes that it rests on: arguments for `campaign lineage`. */
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

const partsSchema = z.array(z.strictObject({ names: z.array(z.string()).min(2), share: z.number() }));

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
  /** Where that missed the bands for want of success: the same with hints. */
  aided: z.array(calibrationFiguresSchema).optional(),
  version: reportedVersionSchema,
  /** What was decided of it, where somebody was asked. */
  decision: z.string().optional(),
});
export type ReportedRound = z.infer<typeof reportedRoundSchema>;

export const reportedCapabilitySchema = z.strictObject({
  ...reportedCandidateSchema.shape,
  /**
   * Of a composite: the pairs that its instances need, by how often failures need them, or all whose environments are mixed. No pass labels it: its coverage is the share of the
   * failures that need two at once. It is calibrated with, and trained from, the sum of their adapters, which `before` is of as well.
   */
  parts: partsSchema.optional(),
  /** It was trained on its parts' environments in turns: none was written for it, and none calibrated. */
  mixed: z.literal(true).optional(),
  /** The last one of the last round that was calibrated: the accepted one, if one was. */
  calibration: calibrationFiguresSchema.optional(),
  rounds: z.array(reportedRoundSchema).optional(),
  /** Of that calibration: a success and a failure, where there are any. */
  episodes: z.array(reportedEpisodeSchema).optional(),
  training: reportedTrainingSchema.optional(),
  validation: z
    .strictObject({
      /** Held-out seeds of the synthesized environment. */
      synthesized: beforeAfterSchema,
      /** The held-out seeds of each branch, where instances have branches. */
      branches: z.array(branchComparisonSchema).optional(),
      /** Held-out tasks of the target's train split. */
      target: beforeAfterSchema,
    })
    .optional(),
  /** All tasks of the target that it was tried on, against what its training started from. */
  onTarget: z
    .strictObject({
      batches: z.array(
        z.strictObject({
          of: z.enum(['held_out', 'router', 'test']),
          difference: figureSchema,
          /** These tasks chose its iteration: they can't judge it as well, and are not among `all`. */
          chose: z.literal(true).optional(),
        }),
      ),
      /** A task of several batches counts once. Absent where no batch can judge it. */
      all: figureSchema.optional(),
    })
    .optional(),
  /** Of one that came to an adapter: one statement from all that is known of it. */
  statement: z
    .strictObject({
      /**
       * `helps` and `hurts`: on the target, beyond chance; `learned`: on held-out seeds of its own environment alone; `no_gain`: on neither. What
       * decides is `onTarget.all`, then `validation.synthesized.difference`.
       */
      verdict: z.enum(['helps', 'hurts', 'learned', 'no_gain']),
      /** It gains on one branch of its own environment by losing another. */
      gamed: z.boolean(),
      ...sentenceFields,
    })
    .optional(),
  adapter: artifactRefSchema.optional(),
  /** Absent while its workflow has not ended. */
  status: z.enum(['trained', 'not_calibrated', 'not_synthesized', 'not_approved', 'not_started', 'failed']).optional(),
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
  /** Why there is no composite of them, where one was looked for. */
  noComposite: z.string().optional(),
  /** Where the analyst cites steps or gives reasons. */
  evidence: z.array(reportedEvidenceSchema).optional(),
  /** Where there are any. */
  faults: reportedFaultsSchema.optional(),
  from: z.array(artifactRefSchema),
});
export type ReportedSelection = z.infer<typeof reportedSelectionSchema>;

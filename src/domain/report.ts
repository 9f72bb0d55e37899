/**
 * report.json. Invariants: every number that was measured on rollouts is a `Figure` and names the artifacts it came from; a figure id
 * means one figure (it may be repeated, never with another content); what the campaign has not come to is absent, never zero.
 */
import { z } from 'zod';
import { artifactRefSchema } from './artifacts';
import { calibrationBandsSchema, selectionRuleSchema } from './campaign';
import { stages } from './stages';
import { figureSchema, figuresIn, type Figure } from './figure';

const count = z.number().int().nonnegative();
const step = count;

/** One calibration round of a synthesized environment. Rates are over groups (seeds). */
export const calibrationFiguresSchema = z.strictObject({
  round: z.number().int().positive(),
  accepted: z.boolean(),
  verdict: z.enum(['accepted', 'too_easy', 'too_hard', 'too_little_contrast']),
  reasons: z.array(z.string()),
  meanReward: figureSchema,
  successRate: figureSchema,
  allSuccess: figureSchema,
  allZero: figureSchema,
  constant: figureSchema,
  informative: figureSchema,
  rewardStd: figureSchema,
  /** pass@k by k; a k above the rollouts per seed is absent. */
  passAt: z.record(z.string(), figureSchema),
});
export type CalibrationFigures = z.infer<typeof calibrationFiguresSchema>;

export const reportedTrainingSchema = z.strictObject({
  steps: step,
  rollouts: figureSchema,
  /** Mean training reward by finished optimizer step, from the trainer's metrics. */
  rewardCurve: z.strictObject({
    points: z.array(z.strictObject({ step, reward: z.number() })),
    from: z.array(artifactRefSchema),
  }),
  /** Mean reward on held-out seeds at each checkpoint: what picks the best step. */
  heldOut: z.array(z.strictObject({ step, reward: figureSchema })),
  bestStep: step.optional(),
});
export type ReportedTraining = z.infer<typeof reportedTrainingSchema>;

const beforeAfterSchema = z.strictObject({
  before: figureSchema,
  after: figureSchema,
  difference: figureSchema.optional(),
});

export const reportedCandidateSchema = z.strictObject({
  name: z.string(),
  definition: z.string(),
  votes: count,
  passes: count,
  coverage: figureSchema,
  delta: figureSchema,
  selected: z.boolean(),
});
export type ReportedCandidate = z.infer<typeof reportedCandidateSchema>;

export const reportedCapabilitySchema = z.strictObject({
  ...reportedCandidateSchema.shape,
  /** The round that was kept: the accepted one, or else the best attempt. */
  calibration: calibrationFiguresSchema.optional(),
  rounds: z.array(calibrationFiguresSchema).optional(),
  selfTest: z.strictObject({ passed: z.boolean(), findings: z.array(z.string()) }).optional(),
  training: reportedTrainingSchema.optional(),
  validation: z
    .strictObject({
      /** Held-out seeds of the synthesized environment. */
      synthesized: beforeAfterSchema,
      /** Held-out tasks of the target's train split. */
      target: beforeAfterSchema,
      helps: z.boolean(),
    })
    .optional(),
  adapter: artifactRefSchema.optional(),
  /** Absent while its workflow has not ended. */
  status: z.enum(['trained', 'not_calibrated', 'not_synthesized', 'failed']).optional(),
  reason: z.string().optional(),
  workflowId: z.string().optional(),
});
export type ReportedCapability = z.infer<typeof reportedCapabilitySchema>;

export const armSchema = z
  .strictObject({
    /** `base`, an adapter's capability, `trace` (the router), `union_ceiling` or a baseline such as `grpo_target`. */
    name: z.string(),
    trainingRollouts: count,
    tasks: count,
    trials: count,
    successRate: figureSchema.optional(),
    /** Paired over tasks; absent for base itself. */
    differenceToBase: figureSchema.optional(),
    /** For a baseline arm: its own training run. */
    training: reportedTrainingSchema.optional(),
    status: z.enum(['evaluated', 'failed']),
    reason: z.string().optional(),
  })
  .refine((arm) => arm.status === 'failed' || arm.successRate !== undefined, 'an evaluated arm has a successRate')
  .refine((arm) => arm.status === 'evaluated' || arm.reason !== undefined, 'a failed arm has a reason');
export type Arm = z.infer<typeof armSchema>;

/** The arms over the tasks of one group; a task may belong to several. */
export const taskGroupSchema = z.strictObject({
  group: z.string(),
  tasks: count,
  arms: z.array(z.strictObject({ arm: z.string(), successRate: figureSchema, meanReward: figureSchema })),
});
export type TaskGroup = z.infer<typeof taskGroupSchema>;

/** Figures of others on the same target (published.ts): not measured here, so none is a `Figure`. */
const publishedSchema = z.strictObject({
  source: z.string(),
  setUp: z.string(),
  arms: z.array(
    z.strictObject({
      arm: z.string(),
      cells: z.array(
        z.strictObject({
          group: z.string(),
          tasks: count,
          successRate: z.number(),
          solved: count.optional(),
          meanReward: z.number().optional(),
        }),
      ),
    }),
  ),
});

/** outcomes[task][option]: share of the trials solved; null where no rollout was scored. */
export const solverMatrixSchema = z
  .strictObject({
    tasks: z.array(z.string()),
    options: z.array(z.string()),
    outcomes: z.array(z.array(z.number().min(0).max(1).nullable())),
  })
  .refine((m) => m.outcomes.length === m.tasks.length, 'outcomes has one row per task')
  .refine((m) => m.outcomes.every((row) => row.length === m.options.length), 'every row has one outcome per option');
export type SolverMatrix = z.infer<typeof solverMatrixSchema>;

/** A larger matrix is in the report as a reference only. */
export const MAX_INLINE_TASKS = 400;

export const reportedRouterSchema = z.strictObject({
  /** The fitted router's kind, e.g. `linear`; `constant` when it always picks one option. */
  kind: z.string(),
  /** Cross-validated success rates on the train split's outcome matrix. */
  crossValidation: z.strictObject({
    routed: figureSchema,
    base: figureSchema,
    bestSingle: z.strictObject({ option: z.string(), successRate: figureSchema }),
    unionCeiling: figureSchema,
  }),
  helps: z.boolean(),
  /** What it chose on the test split. */
  choices: z.array(z.strictObject({ option: z.string(), share: figureSchema })).optional(),
  /** Conversations that it could not route. */
  errors: figureSchema.optional(),
});
export type ReportedRouter = z.infer<typeof reportedRouterSchema>;

export const verdictSentenceSchema = z.strictObject({
  text: z.string(),
  /** Figure ids or artifact hashes that the sentence rests on: arguments for `campaign lineage`. */
  behind: z.array(z.string()),
});
export type VerdictSentence = z.infer<typeof verdictSentenceSchema>;

const reportShape = z.strictObject({
  campaign: z.strictObject({
    name: z.string(),
    seed: count,
    configSha256: z.string(),
    baseModel: z.string(),
    target: z.strictObject({ name: z.string(), version: z.string() }),
    startedAt: z.iso.datetime(),
    finishedAt: z.iso.datetime().optional(),
    status: z.enum(['running', 'stopped_at_stage', 'completed', 'failed']),
    /** The last stage that the campaign came to. */
    stage: z.enum(stages),
    reason: z.string().optional(),
    workflowId: z.string().optional(),
  }),
  rollouts: z
    .strictObject({
      scored: figureSchema,
      broken: figureSchema,
      brokenByError: z.array(z.strictObject({ errorType: z.string(), rollouts: figureSchema })),
      byPurpose: z.array(
        z.strictObject({
          purpose: z.string(),
          scored: figureSchema,
          broken: figureSchema,
          promptTokens: figureSchema.optional(),
          completionTokens: figureSchema.optional(),
        }),
      ),
    })
    .optional(),
  selection: z
    .strictObject({
      rule: selectionRuleSchema,
      failed: count,
      passed: count,
      candidates: z.array(reportedCandidateSchema),
      /** Why nothing was selected, where nothing was. */
      reason: z.string().optional(),
      from: z.array(artifactRefSchema),
    })
    .optional(),
  bands: calibrationBandsSchema.optional(),
  /** The selected capabilities. */
  capabilities: z.array(reportedCapabilitySchema).optional(),
  router: reportedRouterSchema.optional(),
  arms: z.array(armSchema).optional(),
  /** Paired differences between arms other than to base: `arm` minus `against`. */
  comparisons: z.array(z.strictObject({ arm: z.string(), against: z.string(), difference: figureSchema })).optional(),
  /** Where the target names groups of tasks; the last one is all of them. */
  groups: z.array(taskGroupSchema).optional(),
  published: publishedSchema.optional(),
  solverMatrix: z
    .strictObject({
      from: artifactRefSchema,
      tasks: count,
      inline: solverMatrixSchema
        .refine(
          (m) => m.tasks.length <= MAX_INLINE_TASKS,
          `more than ${MAX_INLINE_TASKS} tasks: give the reference only`,
        )
        .optional(),
    })
    .optional(),
  leakage: z
    .strictObject({
      passed: z.boolean(),
      textsChecked: count,
      testTasks: count,
      hits: z.array(z.strictObject({ where: z.string(), task: z.string() })),
      from: z.array(artifactRefSchema),
    })
    .optional(),
  cost: z
    .strictObject({
      /** From the workflow's history: the one kind of number here that is not measured on rollouts. */
      wallSeconds: z.array(z.strictObject({ stage: z.enum(stages), seconds: z.number().nonnegative() })),
      rollouts: figureSchema,
      promptTokens: figureSchema,
      completionTokens: figureSchema,
    })
    .optional(),
  verdict: z.array(verdictSentenceSchema),
});

export const reportSchema = reportShape.superRefine((report, context) => {
  // Parsed figures have their fields in the schema's order, so equal ones are equal as text.
  const seen = new Map<string, Figure>();
  for (const figure of figuresIn(report)) {
    const other = seen.get(figure.id);
    if (other === undefined) seen.set(figure.id, figure);
    else if (JSON.stringify(other) !== JSON.stringify(figure))
      context.addIssue({
        code: 'custom',
        message: `two different figures have the id ${figure.id}: give each its own`,
      });
  }
});
export type Report = z.infer<typeof reportSchema>;
/** A report before its verdict is computed. */
export type ReportDraft = Omit<Report, 'verdict'>;

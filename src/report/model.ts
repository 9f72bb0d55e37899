/**
 * report.json. Invariants: every number that was measured on rollouts is a `Figure` and names the artifacts it came from; a figure id
 * means one figure (it may be repeated, never with another content); what the campaign has not come to is absent, never zero. What an arm is
 * follows from its role, never from its name.
 */
import { z } from 'zod';
import { type Figure, figureSchema, figuresIn, artifactRefSchema } from '../domain/artifacts';
import {
  type CapabilityDraft,
  reportedCapabilitySchema,
  reportedSelectionSchema,
  reportedTrainingSchema,
  sentenceFields,
} from './capability-model';
import { stages } from '../domain/campaign';
import { calibrationBandsSchema } from '../domain/calibration';
import { budgetSchema, costSchema, payingRoleSchema, spentSchema } from '../domain/endpoints';
import { campaignOutcomes } from '../domain/results';
import { purposeSchema } from '../domain/rollout';

const count = z.number().int().nonnegative();
const step = count;

/**
 * What a row of the arms is: the base model, one adapter, a sum of adapters that the router may choose, the routed policy, the bound of routing (tasks that any of the router's options
 * solves: no policy), or a baseline, an arm of the campaign file.
 */
const roles = ['base', 'adapter', 'merged', 'routed', 'oracle', 'baseline'] as const;
export type Role = (typeof roles)[number];

const armSchema = z
  .strictObject({
    name: z.string(),
    role: z.enum(roles),
    /** Of a baseline. */
    kind: z.string().optional(),
    /** Capabilities whose environments the baseline trains on. */
    builtOn: z.array(z.string()).optional(),
    /** Another row of which it is the very policy: the two are samples of one. */
    sameAs: z.string().optional(),
    /** Training rollouts spent to choose what is evaluated from; of a baseline those within what the routed policy spent. */
    trainingRollouts: figureSchema,
    /** Of the iteration that is evaluated, where it is not the last of these. */
    evaluatedRollouts: figureSchema.optional(),
    /** All that a baseline trained, where that is more: the rest counts for nothing. */
    trainedTo: figureSchema.optional(),
    /** All rollouts that were made to come to it, whatever for; test rollouts are nobody's. */
    allRollouts: figureSchema,
    /** The step that is evaluated. */
    step: step.optional(),
    tasks: count,
    trials: count,
    successRate: figureSchema.optional(),
    /** Paired over tasks; absent for base itself. */
    differenceToBase: figureSchema.optional(),
    /** Success on the held-out train tasks of the target. */
    heldOut: figureSchema.optional(),
    /** Why its test rollouts ended; the scored ones. */
    stopReasons: z.array(z.strictObject({ reason: z.string(), rollouts: figureSchema })).optional(),
    /** Of a baseline: how it came to what is evaluated. */
    training: reportedTrainingSchema.optional(),
    status: z.enum(campaignOutcomes).extract(['completed', 'failed']),
    reason: z.string().optional(),
  })
  .refine((arm) => arm.status === 'failed' || arm.successRate !== undefined, 'a completed arm has a successRate')
  .refine((arm) => arm.status === 'completed' || arm.reason !== undefined, 'a failed arm has a reason')
  .refine((arm) => (arm.role === 'baseline') === (arm.kind !== undefined), 'a baseline, and nothing else, has a kind');
export type Arm = z.infer<typeof armSchema>;

/** The arms over the tasks of one group; a task may belong to several. */
const taskGroupSchema = z.strictObject({
  group: z.string(),
  tasks: count,
  arms: z.array(z.strictObject({ arm: z.string(), successRate: figureSchema, meanReward: figureSchema })),
});
export type TaskGroup = z.infer<typeof taskGroupSchema>;

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

const seconds = z.number().nonnegative();

const reportedRouterSchema = z.strictObject({
  /** As in the campaign file, e.g. `learned`. */
  kind: z.string(),
  /** The option that gets every conversation, where routing did not help. */
  constant: z.string().optional(),
  /** Cross-validated success rates on the train split's outcome matrix. */
  crossValidation: z.strictObject({
    routed: figureSchema,
    base: figureSchema,
    bestSingle: z.strictObject({ option: z.string(), successRate: figureSchema }),
    oracle: figureSchema,
    /** Where several forms were compared, each on the same folds; one of them was kept. */
    forms: z.array(z.strictObject({ form: z.string(), successRate: figureSchema, kept: z.boolean() })).optional(),
  }),
  helps: z.boolean(),
  /** Why adapters were not added up, where there are several. */
  noSums: z.string().optional(),
  /** Options that it can't choose, since their rollouts could not be made. */
  failed: z.array(z.strictObject({ name: z.string(), reason: z.string() })).optional(),
  /**
   * What it chose on the test split: the share of conversations, the success of those on it, and the mean of the probabilities that it gave;
   * over the scored rollouts.
   */
  choices: z
    .array(
      z.strictObject({
        option: z.string(),
        share: figureSchema,
        successRate: figureSchema.optional(),
        probability: figureSchema.optional(),
      }),
    )
    .optional(),
  /** Median over the test conversations. */
  latency: figureSchema.optional(),
  /** Test rollouts that broke because it could not choose. */
  errors: figureSchema.optional(),
});
export type ReportedRouter = z.infer<typeof reportedRouterSchema>;

const verdictSentenceSchema = z.strictObject(sentenceFields);
export type VerdictSentence = z.infer<typeof verdictSentenceSchema>;

/** The routed policy beside a baseline: `arm` minus `against`. */
const comparisonSchema = z.strictObject({
  arm: z.string(),
  against: z.string(),
  /** The difference of these two policies on the test tasks. It says nothing about other trainings of them. */
  difference: figureSchema,
});

/** Which of the evaluated policies to ship, and why. */
const recommendationSchema = z.strictObject({
  arm: z.string(),
  ...sentenceFields,
  /** The text in parts: which policy to ship, then whether the target is the cheaper place to train. */
  sentences: z.array(verdictSentenceSchema).default([]),
  /** The tests that decided: of each candidate against the base model, then of each baseline against the routed policy. */
  tests: z.array(
    z.strictObject({
      arm: z.string(),
      against: z.string(),
      p: z.number(),
      /** Holm's correction for all tests against the same policy. */
      corrected: z.number(),
      isBetter: z.boolean(),
    }),
  ),
});
export type Recommendation = z.infer<typeof recommendationSchema>;

/** Of the form of report.json. A file of another one is refused, and `campaign run` writes it anew from what is stored. */
export const REPORT_VERSION = 4;

const reportShape = z.strictObject({
  schemaVersion: z.literal(REPORT_VERSION, {
    error: ({ input }) => `the form is ${String(input ?? 'an older one')}, and this program reads ${REPORT_VERSION}`,
  }),
  campaign: z.strictObject({
    name: z.string(),
    seed: count,
    /** Of trainings, where it is another than `seed`. */
    trainingSeed: count.optional(),
    configSha256: z.string(),
    /** The campaign file with all defaults. */
    config: z.record(z.string(), z.unknown()).optional(),
    baseModel: z.string(),
    target: z.strictObject({ name: z.string(), version: z.string(), notes: z.array(z.string()).optional() }),
    startedAt: z.iso.datetime(),
    finishedAt: z.iso.datetime(),
    status: z.enum(campaignOutcomes),
    /** The last stage that the campaign came to. */
    stage: z.enum(stages),
    workflowId: z.string(),
  }),
  /** What the look at the base model found: a base that can't work on the target, where the campaign was forced to go on. */
  baseCheck: z.strictObject({ findings: z.array(z.string()).min(1), from: z.array(artifactRefSchema) }).optional(),
  rollouts: z
    .strictObject({
      scored: figureSchema,
      broken: figureSchema,
      /** By cause: rollouts whose error is the same but for names and numbers. The message is that of one of them, at `task`. */
      brokenByError: z.array(
        z.strictObject({ errorType: z.string(), message: z.string(), task: z.string(), rollouts: figureSchema }),
      ),
      byPurpose: z.array(
        z.strictObject({
          purpose: purposeSchema,
          scored: figureSchema,
          broken: figureSchema,
          promptTokens: figureSchema.optional(),
          completionTokens: figureSchema.optional(),
        }),
      ),
    })
    .optional(),
  /** The base model on the train tasks that it was rolled out on. */
  base: z
    .strictObject({
      successRate: figureSchema,
      meanReward: figureSchema,
      groups: z.array(taskGroupSchema).optional(),
    })
    .optional(),
  selection: reportedSelectionSchema.optional(),
  bands: calibrationBandsSchema.optional(),
  /** The selected capabilities. */
  capabilities: z.array(reportedCapabilitySchema).optional(),
  router: reportedRouterSchema.optional(),
  arms: z.array(armSchema).optional(),
  /** Training rollouts that baselines were held to: those of all capabilities, to their last step. */
  budget: figureSchema.optional(),
  /** The routed policy beside each baseline. */
  comparisons: z.array(comparisonSchema).optional(),
  /** Where the target names groups of tasks; the last one is all of them. */
  groups: z.array(taskGroupSchema).optional(),
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
      /** Of synthesized environments: those that were not used, since an instance of the seed, or of its twin, says a test task's text. */
      seedsLeftOut: count,
      hits: z.array(z.strictObject({ where: z.string(), task: z.string() })),
      from: z.array(artifactRefSchema),
    })
    .optional(),
  cost: z
    .strictObject({
      /** Time between start and end of each stage, with all outages, approvals and queues in it. */
      wallSeconds: z.array(z.strictObject({ stage: z.enum(stages), seconds })),
      /** Seconds of one rollout, without and with its gradient, while it was played; absent where that was not measured. */
      secondsPerRollout: z.strictObject({ rollout: seconds.optional(), training: seconds.optional() }).optional(),
      rollouts: figureSchema,
      promptTokens: figureSchema,
      completionTokens: figureSchema,
      /** Of all language models, those of users and judges too, from the ledger; absent where nothing was asked. */
      languageModel: z
        .strictObject({
          /** None of what was paid before roles were told apart. */
          roles: z.array(z.strictObject({ role: payingRoleSchema, ...costSchema.shape })).default([]),
          steps: z.array(z.strictObject(spentSchema.shape)),
          total: z.strictObject(spentSchema.shape),
          budget: budgetSchema,
        })
        .optional(),
    })
    .optional(),
  /** Absent where no policy was evaluated. */
  recommendation: recommendationSchema.optional(),
  /** Begins with the recommendation. */
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
/** A report before what follows from its figures is computed. */
export type ReportDraft = Omit<Report, 'verdict' | 'recommendation' | 'capabilities' | 'schemaVersion'> & {
  capabilities?: CapabilityDraft[] | undefined;
};

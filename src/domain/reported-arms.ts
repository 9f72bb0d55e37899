/**
 * The arms in report.json: on all test tasks, by group of tasks, task by task. Invariants: what an arm is follows from its role, never from
 * its name; a number that was measured on rollouts is a `Figure`.
 */
import { z } from 'zod';
import { figureSchema } from './figure';
import { reportedTrainingSchema } from './reported-training';

const count = z.number().int().nonnegative();
const step = count;

/**
 * What a row of the arms is: the base model, one adapter, a sum of adapters that the router may choose, the routed policy, the bound of routing (tasks that any of the router's options
 * solves: no policy), or a baseline, an arm of the campaign file.
 */
export const roles = ['base', 'adapter', 'sum', 'routed', 'bound', 'baseline'] as const;
export type Role = (typeof roles)[number];

export const armSchema = z
  .strictObject({
    name: z.string(),
    role: z.enum(roles),
    /** Of a baseline. */
    kind: z.string().optional(),
    /** Of a baseline that takes over environments, or of a composite's adapter: the capabilities they are of. */
    builtOn: z.array(z.string()).optional(),
    /** Of a baseline that learned from conversations that somebody brought: how many. */
    conversations: count.optional(),
    /** Another row of which it is the very policy: the two are samples of one. */
    sameAs: z.string().optional(),
    /** Of a baseline that the router may give conversations to. */
    routable: z.boolean().optional(),
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
    status: z.enum(['evaluated', 'failed']),
    reason: z.string().optional(),
  })
  .refine((arm) => arm.status === 'failed' || arm.successRate !== undefined, 'an evaluated arm has a successRate')
  .refine((arm) => arm.status === 'evaluated' || arm.reason !== undefined, 'a failed arm has a reason')
  .refine((arm) => (arm.role === 'baseline') === (arm.kind !== undefined), 'a baseline, and nothing else, has a kind');
export type Arm = z.infer<typeof armSchema>;

/** The arms over the tasks of one group; a task may belong to several. */
export const taskGroupSchema = z.strictObject({
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

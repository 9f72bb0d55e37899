/**
 * A campaign: every constant of the method is a field here, with the paper's value as its default (preset `paper`); the other presets are the
 * same method configured small. Unknown fields are errors. The options of a part that is picked by `kind` (target, analyst, synthesizer, router,
 * arms) are its kind's own.
 */
import { z } from 'zod';
import { approvalRuleSchema } from './approval';
import { budgetSchema, keyedUrl, type LanguageModelSpec, policyServerUrl, trainingPriceField } from './endpoints';
import { calibrationBandsSchema } from './calibration';
import { count, fraction, kindSpecSchema, MOST } from './kinds';
import { isPolicyName } from './policies';
import { thinkings } from './rollout';

// The command line names the stages in its help, for which zod is not loaded.
export { stages, type Stage } from './work';

const whole = z.number().int().min(0);
const from = (least: number) => z.number().int().min(least).max(MOST);
const positive = z.number().positive();
const addIssue = <T>(context: z.RefinementCtx<T>, path: string[], message: string): void =>
  context.addIssue({ code: 'custom', path, message });
/** Training rollouts of one adapter. */
const MOST_TRAINING_ROLLOUTS = 10 * MOST;

const maxSteps = count.default(50).describe("Most answers of the policy in a rollout, within the environment's limit.");

const sampling = (temperature: number) =>
  z
    .strictObject({
      temperature: z.number().min(0).max(2).default(temperature).describe('Sampling temperature; 0 is greedy.'),
      topP: z.number().gt(0).max(1).default(1).describe('Nucleus sampling.'),
      maxTokens: count.default(512).describe('Most tokens of one answer of the policy.'),
      thinking: z
        .enum(thinkings)
        .optional()
        .describe(
          "Thinking: kept in the conversation (the default), stripped as the model's template does, or off. Environments and users never see it.",
        ),
    })
    .prefault({});

const loraSchema = z
  .strictObject({
    r: count.default(16).describe('Rank of the adapter.'),
    alpha: count.default(16).describe('Scale: its output is multiplied by alpha / r.'),
    dropout: fraction.default(0).describe("Dropout on the adapter's input."),
    targetModules: z
      .array(z.string())
      .default(['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'])
      .describe('Adapted modules; `campaign check FILE` lists those of the base model.'),
  })
  .prefault({});

const trainingSchema = z
  .strictObject({
    lora: loraSchema.describe('The adapter that is trained.'),
    learningRate: z.number().min(0).default(1e-5).describe('Learning rate of Adam.'),
    maxGradNorm: z.number().min(0).default(1).describe('Norm to which gradients are clipped; 0: never.'),
    groupSize: from(2).default(16).describe('Rollouts of one task in a step.'),
    groupsPerStep: count.default(32).describe('Tasks of one optimizer step.'),
    steps: count.default(20).describe('Optimizer steps of one training.'),
    clip: positive.default(0.2).describe('Epsilon: most distance of the probability ratio from 1.'),
    delta: positive.default(4).describe('Bound of that ratio at negative advantages (two-sided GRPO).'),
    importanceSamplingClipMax: positive
      .optional()
      .describe('Truncated importance sampling instead of clip and delta: the most weight of a token.'),
    offPolicyMaskThreshold: positive
      .default(0.5)
      .describe("Omits rows of negative advantage whose mean log-prob in the sampler exceeds the trainer's by more."),
    maxLogprobGap: positive
      .default(0.5)
      .describe("Mean difference of the sampler's and the trainer's log-probs at which a training fails."),
    kl: z.number().min(0).default(0).describe('Weight of the KL penalty towards the base model.'),
    temperature: z.number().positive().default(1).describe('Temperature of training rollouts.'),
    stepsAhead: z
      .number()
      .int()
      .min(0)
      .max(1)
      .default(0)
      .describe('1: rollouts are sampled during the previous update (docs/gpu.md).'),
    advantage: z
      .enum(['group', 'batch'])
      .default('group')
      .describe('Normalizes rewards by the standard deviation of group or batch.'),
    maskReadOnlyTurns: z.boolean().default(true).describe('Turns that only call read-only tools carry no loss.'),
    checkpointEvery: count.default(5).describe('Steps between candidates for the best checkpoint.'),
    threads: count.default(8).describe('Torch threads of one trainer.'),
    dtype: z.enum(['float32', 'bfloat16']).default('float32').describe('Number format of base model and adapter.'),
    tokensPerForward: count.default(4096).describe('Padded tokens of a forward pass; a longer row goes alone.'),
    gradientCheckpointing: z.boolean().default(false).describe('Computes activations twice, to save memory.'),
    reportTo: z
      .enum(['none', 'tensorboard', 'wandb'])
      .default('none')
      .describe('Where a trainer reports its curves (docs/report.md).'),
  })
  .superRefine(({ steps, groupsPerStep, groupSize, clip, delta, stepsAhead, temperature }, context) => {
    const rollouts = steps * groupsPerStep * groupSize;
    // A field that is too large by itself has a message of its own.
    if (rollouts > MOST_TRAINING_ROLLOUTS && Math.max(steps, groupsPerStep, groupSize) <= MOST)
      addIssue(
        context,
        ['steps'],
        `at most ${Math.floor(MOST_TRAINING_ROLLOUTS / groupsPerStep / groupSize)} with groupsPerStep ${groupsPerStep} and groupSize ${groupSize}: these are ${rollouts} rollouts for an adapter, of at most ${MOST_TRAINING_ROLLOUTS}`,
      );
    if (stepsAhead > 0 && temperature !== 1)
      addIssue(
        context,
        ['stepsAhead'],
        `0 with training.temperature ${temperature}: rollouts at another temperature than 1 are not corrected for the update; set one of them so`,
      );
    if (delta <= 1 + clip)
      addIssue(
        context,
        ['delta'],
        `over 1 + training.clip (${1 + clip}), where clip already bounds the ratio; raise it`,
      );
  })
  .prefault({});
export type Training = z.infer<typeof trainingSchema>;

const trainerSchema = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('local').describe('Processes of the gpu workers, on their GPUs.') }),
    z.strictObject({
      kind: z.literal('tinker').describe('A server of the Tinker API; TINKER_API_KEY holds its key.'),
      url: keyedUrl('TINKER_API_KEY holds the key').describe('URL of the server.'),
      model: z.string().min(1).optional().describe('Name of the base model there; default: its only one.'),
      price: trainingPriceField.describe('Dollars per million tokens; without it no cost is counted.'),
    }),
  ])
  .prefault({ kind: 'local' });
export type Trainer = z.infer<typeof trainerSchema>;

export const selectionRuleSchema = z
  .strictObject({
    maxCandidates: count.default(10).describe('Most candidates of discovery.'),
    passes: count.default(10).describe('Labeling passes over all base rollouts.'),
    rho: fraction.default(0.1).describe('Lowest coverage: share of failures that lack it.'),
    delta: fraction.default(0.2).describe('Lowest contrast between failures and successes.'),
    votes: count.default(8).describe('Passes in which both hold.'),
    evidence: count.default(8).describe('Failures kept as evidence of each.'),
  })
  .prefault({});
export type SelectionRule = z.infer<typeof selectionRuleSchema>;

/** Fields of every kind of router: the outcome matrix that it is fitted on. */
export const outcomeMatrixFields = {
  tasks: count.default(200).describe('Train tasks on which every policy is tried.'),
  trials: count.default(1).describe('Rollouts of each task and policy.'),
};

export const armNameSchema = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,62}$/, 'a name of lower-case letters, digits and underscores')
  .refine((name) => !isPolicyName(name), 'another name: the report has this one already')
  .describe('Row in the report; default: the kind. Names must differ.');

export const armName = ({ kind, name }: { kind: string; name?: string | undefined }): string => name ?? kind;

/** Without what has to hold between its fields. */
export const campaignFields = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'lower-case letters, digits and dashes')
    .describe('Name in commands, folders and Temporal.'),
  seed: whole.default(1).describe('Seed of all random draws.'),
  trainingSeed: whole.optional().describe('Replaces `seed` in trainings only.'),
  plugins: z
    .array(z.string().min(1))
    .default([])
    .describe('Packages, or paths (./ or ../) relative to this file, that add kinds (docs/extending.md).'),
  target: kindSpecSchema.describe('The environment that the agent is trained for.'),
  baseModel: z
    .strictObject({
      path: z.string().describe('Folder with weights and tokenizer, relative to this file.'),
      id: z
        .string()
        .regex(/^[^@\s,]+@[0-9a-f]{12}$/, 'NAME@HASH, as `campaign check FILE` says where the folder is')
        .optional()
        .describe('Its hash (`campaign check FILE` prints it), to start without the folder.'),
    })
    .describe('The model that is trained.'),
  policyServer: z
    .discriminatedUnion('kind', [
      z.strictObject({
        kind: z.literal('embedded').describe('A server that the campaign starts itself.'),
        maxBatch: count.default(64).describe('Conversations at once.'),
        threads: count.default(2).describe('Torch threads.'),
      }),
      z.strictObject({
        kind: z.literal('vllm').describe('A vLLM server that runs already.'),
        url: policyServerUrl.describe('URL of the server.'),
        model: z.string().min(1).optional().describe('Required name of the base model there.'),
        contextTokens: count.default(32_768).describe('Required --max-model-len of the server.'),
        gpus: count.default(1).describe('GPUs of the server, for `campaign check`.'),
      }),
    ])
    .prefault({ kind: 'embedded' })
    .describe('The server that samples from the base model and its adapters.'),
  rollouts: z
    .strictObject({
      tasks: count.default(400).describe('Train tasks for the analysis.'),
      perTask: count.default(1).describe('Base rollouts of each task.'),
      concurrency: count.default(64).describe('Parallel rollouts.'),
      sampling: sampling(0.7).describe('Sampling of base rollouts.'),
      maxSteps,
      maxAttempts: count.default(3).describe('Attempts at a rollout that fails (infrastructure).'),
      maxBrokenShare: fraction.default(0.1).describe('Share of such failures at which a batch stops.'),
    })
    .prefault({})
    .describe('Rollouts of the base model, and how all rollouts are made.'),
  selection: selectionRuleSchema.describe('Which capabilities are selected for training.'),
  analyst: kindSpecSchema.describe('Proposes what the agent lacks, and labels the rollouts.'),
  synthesizer: kindSpecSchema.describe('Writes an environment for each selected capability.'),
  budget: budgetSchema.prefault({}).describe('Limit for all language models together.'),
  approval: approvalRuleSchema.describe('Steps that wait for a person.'),
  calibration: calibrationBandsSchema.describe('When a synthesized environment is accepted for training.'),
  training: trainingSchema.describe('Training of one adapter with GRPO.'),
  trainer: trainerSchema.describe('Holds adapters during training and makes optimizer steps.'),
  validation: z
    .strictObject({
      seeds: count.default(100).describe('Held-out instances of the synthesized environment.'),
      targetTasks: count.default(60).describe('Held-out train tasks of the target.'),
      trials: count.default(1).describe('Rollouts of each of them.'),
    })
    .prefault({})
    .describe('Choice and validation of the best checkpoint.'),
  router: kindSpecSchema
    .extend({ kind: z.string().default('learned'), ...outcomeMatrixFields })
    .prefault({})
    .describe('Chooses the policy of each conversation.'),
  arms: z
    .array(kindSpecSchema.extend({ name: armNameSchema.optional() }))
    .default([{ kind: 'grpo_target' }])
    .describe('Baselines with as many training rollouts as all adapters together.'),
  evaluation: z
    .strictObject({
      tasks: count.default(200).describe('Tasks of the test split.'),
      skip: whole.default(0).describe('Test tasks to skip from the first, such as those read before.'),
      trials: count.default(1).describe('Rollouts of each task and policy.'),
      sampling: sampling(0).describe('Sampling of all evaluations.'),
      maxSteps,
      confidence: z.number().gt(0).lt(1).default(0.95).describe('Level of all intervals.'),
    })
    .prefault({})
    .describe('The comparison of all policies on the test split.'),
  workers: z
    .strictObject({
      pool: z
        .string()
        .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'lower-case letters, digits and dashes')
        .optional()
        .describe('CAMPAIGN_POOL of the workers; default: those of `campaign run`.'),
      gpuSlots: count.default(1).describe('Trainers that run at once.'),
      gpusPerTrainer: whole.default(0).describe('GPUs of one trainer, one process each; 0: the first visible one.'),
      shardBase: z.boolean().default(false).describe('Each GPU of a trainer holds a part of the base model.'),
      heartbeatSeconds: from(5)
        .optional()
        .describe('Seconds without a heartbeat after which a worker is lost; default: 30, with `pool` 90.'),
      stallSeconds: count
        .default(1800)
        .describe('Seconds without a message after which a trainer in its turn is killed.'),
    })
    .superRefine(({ shardBase, gpusPerTrainer }, context) => {
      if (shardBase && gpusPerTrainer < 2)
        addIssue(
          context,
          ['shardBase'],
          `false where workers.gpusPerTrainer is ${gpusPerTrainer}: there is nothing to divide; give a trainer 2 or more`,
        );
    })
    .transform((workers) => {
      const { pool, heartbeatSeconds = pool === undefined ? 30 : 90 } = workers;
      return { ...workers, heartbeatSeconds };
    })
    .prefault({})
    .describe('Workers and timeouts.'),
});

/** Checks the conditions between fields that do not depend on the kinds of the parts. */
export function checkFields(
  campaign: z.infer<typeof campaignFields>,
  context: z.RefinementCtx<z.infer<typeof campaignFields>>,
): void {
  const { arms, trainer, training, budget } = campaign;
  if (trainer.kind === 'tinker' && budget.dollars !== undefined && !trainer.price)
    addIssue(
      context,
      ['trainer', 'price'],
      `given with budget.dollars (${budget.dollars}), which counts by it; add price: { forward, train } in dollars for a million tokens`,
    );
  // Such a server has no place for these.
  const fixed: [path: string[], value: unknown, only: string | number][] = [
    [['training', 'lora', 'dropout'], training.lora.dropout, 0],
    [['training', 'kl'], training.kl, 0],
    [['training', 'temperature'], training.temperature, 1],
    [['training', 'stepsAhead'], training.stepsAhead, 0],
    [['training', 'reportTo'], training.reportTo, 'none'],
  ];
  for (const [path, value, only] of fixed)
    if (trainer.kind === 'tinker' && value !== only)
      addIssue(context, path, `${only} with trainer.kind tinker; set it to that`);
  const names = arms.map(armName);
  const twice = names.find((name, n) => names.indexOf(name) !== n);
  if (twice !== undefined)
    addIssue(context, ['arms'], `a list of arms of which each has a name of its own; ${twice} is there twice`);
}

/** With any kinds of parts: their options are left as they are. The reader of campaign files knows the kinds (src/cli/campaign-schema.ts). */
export const campaignSchema = campaignFields.superRefine(checkFields);

/** Facts that the kinds of the parts know. The reader of the campaign file adds them, since workflows know the kinds of arms only. */
export interface PartFacts {
  /** The language model that the analyst asks, where it asks one. */
  analystModel?: LanguageModelSpec;
}

export type Campaign = z.infer<typeof campaignSchema> & { parts?: PartFacts };

/** A campaign: every constant of the method is a field, with the paper's value as its default. The options of a kind are its own. */
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
const MOST_TRAINING_ROLLOUTS = 10 * MOST;

const maxSteps = count.default(50).describe('Answers per rollout, at most.');

const sampling = (temperature: number) =>
  z
    .strictObject({
      temperature: z.number().min(0).max(2).default(temperature).describe('Sampling temperature; 0 is greedy.'),
      topP: z.number().gt(0).max(1).default(1).describe('Nucleus sampling.'),
      maxTokens: count.default(512).describe('Tokens per answer.'),
      thinking: z
        .enum(thinkings)
        .optional()
        .describe("The policy's thoughts: kept in its context (default), stripped as its template does, or off."),
    })
    .prefault({});

const loraSchema = z
  .strictObject({
    r: count.default(16).describe('Rank.'),
    alpha: count.default(16).describe('Scale: alpha / r.'),
    dropout: fraction.default(0).describe('Dropout.'),
    targetModules: z
      .array(z.string())
      .default(['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'])
      .describe('Adapted modules.'),
  })
  .prefault({});

const trainingSchema = z
  .strictObject({
    lora: loraSchema.describe('The adapter.'),
    learningRate: z.number().min(0).default(1e-5).describe('Learning rate of Adam.'),
    maxGradNorm: z.number().min(0).default(1).describe('Norm that clips gradients; 0: never.'),
    groupSize: from(2).default(16).describe('Rollouts per task and step.'),
    groupsPerStep: count.default(32).describe('Tasks per step.'),
    steps: count.default(20).describe('Optimizer steps.'),
    clip: positive.default(0.2).describe('Epsilon: clips the probability ratio.'),
    delta: positive.default(4).describe('Bound of the ratio at negative advantages (two-sided GRPO).'),
    importanceSamplingClipMax: positive
      .optional()
      .describe('Highest weight of truncated importance sampling, which replaces clip and delta.'),
    offPolicyMaskThreshold: positive
      .default(0.5)
      .describe("Omits a row of negative advantage if the sampler's mean log-prob exceeds the trainer's by more."),
    maxLogprobGap: positive
      .default(0.5)
      .describe('Mean log-prob difference of sampler and trainer that fails a training.'),
    kl: z.number().min(0).default(0).describe('Weight of the KL penalty.'),
    temperature: z.number().positive().default(1).describe('Temperature of training rollouts.'),
    advantage: z.enum(['group', 'batch']).default('group').describe('Whose standard deviation normalizes rewards.'),
    maskReadOnlyTurns: z.boolean().default(true).describe('No loss on turns of read-only calls.'),
    checkpointEvery: count.default(5).describe('Steps between checkpoints.'),
    threads: count.default(8).describe('Torch threads of one trainer.'),
    dtype: z
      .enum(['float32', 'bfloat16'])
      .default('float32')
      .describe('Number format; on a CPU of linear layers, also in the embedded policy server.'),
    tokensPerForward: count.default(4096).describe('Padded tokens per forward pass.'),
    gradientCheckpointing: z
      .boolean()
      .default(false)
      .describe('Saves memory, costs time. On a CPU it is on if memory requires it.'),
    reportTo: z.enum(['none', 'tensorboard', 'wandb']).default('none').describe('Curves (docs/report.md).'),
  })
  .superRefine(({ steps, groupsPerStep, groupSize, clip, delta }, context) => {
    const rollouts = steps * groupsPerStep * groupSize;
    // A field that is too large by itself has a message of its own.
    if (rollouts > MOST_TRAINING_ROLLOUTS && Math.max(steps, groupsPerStep, groupSize) <= MOST)
      addIssue(
        context,
        ['steps'],
        `at most ${Math.floor(MOST_TRAINING_ROLLOUTS / groupsPerStep / groupSize)} with groupsPerStep ${groupsPerStep} and groupSize ${groupSize}: these are ${rollouts} rollouts for an adapter, of at most ${MOST_TRAINING_ROLLOUTS}`,
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
      url: keyedUrl('TINKER_API_KEY holds the key').describe('URL.'),
      model: z.string().min(1).optional().describe('Base model there; default: its only one.'),
      price: trainingPriceField.describe('Dollars per million tokens.'),
    }),
  ])
  .prefault({ kind: 'local' });
export type Trainer = z.infer<typeof trainerSchema>;

export const selectionRuleSchema = z
  .strictObject({
    maxCandidates: count.default(10).describe('Proposed capabilities, at most.'),
    passes: count.default(10).describe('Labeling passes.'),
    rho: fraction.default(0.1).describe('Lowest coverage.'),
    delta: fraction.default(0.2).describe('Lowest contrast to successes.'),
    votes: count.default(8).describe('Passes that must meet both.'),
    evidence: count.default(8).describe('Failures kept as evidence.'),
  })
  .prefault({});
export type SelectionRule = z.infer<typeof selectionRuleSchema>;

/** Fields of every kind of router: the outcome matrix that it is fitted on. */
export const outcomeMatrixFields = {
  tasks: count.default(200).describe('Train tasks.'),
  trials: count.default(1).describe('Rollouts per task and policy.'),
};

export const armNameSchema = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,62}$/, 'a name of lower-case letters, digits and underscores')
  .refine((name) => !isPolicyName(name), 'another name: the report has this one already')
  .describe('Unique name in the report; default: the kind.');

export const armName = ({ kind, name }: { kind: string; name?: string | undefined }): string => name ?? kind;

/** Fields of a campaign, without the checks between fields. */
export const campaignFields = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'lower-case letters, digits and dashes')
    .describe('Name in commands and folders.'),
  seed: whole.default(1).describe('Random seed.'),
  trainingSeed: whole.optional().describe('`seed` of trainings.'),
  plugins: z.array(z.string().min(1)).default([]).describe('Packages or paths that add kinds.'),
  target: kindSpecSchema.describe('The environment to train for.'),
  baseModel: z
    .strictObject({
      path: z.string().optional().describe('Folder of the model.'),
      hub: z
        .string()
        .regex(/^\w[\w.-]*\/\w[\w.-]*$/, 'OWNER/NAME of a model on the Hugging Face hub')
        .optional()
        .describe('Or OWNER/NAME on the Hugging Face hub (docs/models.md).'),
      revision: z
        .string()
        .regex(/^(?!.*\.\.)\w[\w./-]*$/, 'a branch, tag or commit of the hub')
        .optional()
        .describe('Branch, tag or commit of `hub`; default: main.'),
      id: z
        .string()
        .regex(/^[^@\s,]+@[0-9a-f]{12}$/, 'NAME@HASH, as `campaign check FILE` says where the folder is')
        .optional()
        .describe('Its hash (`check` prints it), to start without the folder.'),
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
        url: policyServerUrl.describe('URL.'),
        model: z.string().min(1).optional().describe('Name that the base model must have there.'),
        contextTokens: count.default(32_768).describe('Value that --max-model-len must have.'),
        gpus: count.default(1).describe('Its GPUs, for `campaign check`.'),
      }),
    ])
    .prefault({ kind: 'embedded' })
    .describe('Samples from base and adapters.'),
  rollouts: z
    .strictObject({
      tasks: count.default(400).describe('Train tasks.'),
      perTask: count.default(1).describe('Rollouts per task.'),
      concurrency: count.default(64).describe('Parallel rollouts.'),
      sampling: sampling(0.7).describe('Sampling.'),
      maxSteps,
      maxAttempts: count.default(3).describe('Attempts at a failing rollout.'),
      maxBrokenShare: fraction.default(0.1).describe('Share of failed rollouts that stops a batch.'),
    })
    .prefault({})
    .describe('Base rollouts, and settings of all rollouts.'),
  selection: selectionRuleSchema.describe('Selection of capabilities.'),
  analyst: kindSpecSchema.describe('Proposes capabilities and labels rollouts.'),
  synthesizer: kindSpecSchema.describe('Writes environments.'),
  budget: budgetSchema.prefault({}).describe('Limit of all costs.'),
  approval: approvalRuleSchema.describe('Steps that wait for approval.'),
  calibration: calibrationBandsSchema.describe('Acceptance of environments.'),
  training: trainingSchema.describe('GRPO of one adapter.'),
  trainer: trainerSchema.describe('Makes optimizer steps.'),
  validation: z
    .strictObject({
      seeds: count.default(100).describe('Held-out instances.'),
      targetTasks: count.default(60).describe('Held-out train tasks.'),
      trials: count.default(1).describe('Rollouts of each.'),
    })
    .prefault({})
    .describe('Choice of the best checkpoint.'),
  router: kindSpecSchema
    .extend({ kind: z.string().default('learned'), ...outcomeMatrixFields })
    .prefault({})
    .describe('Chooses a policy per conversation.'),
  arms: z
    .array(kindSpecSchema.extend({ name: armNameSchema.optional() }))
    .default([{ kind: 'grpo_target' }])
    .describe('Baselines with the same number of training rollouts.'),
  evaluation: z
    .strictObject({
      tasks: count.default(200).describe('Tasks of the test split.'),
      skip: whole.default(0).describe('Test tasks to skip.'),
      trials: count.default(1).describe('Rollouts per task and policy.'),
      sampling: sampling(0).describe('Sampling.'),
      maxSteps,
      confidence: z.number().gt(0).lt(1).default(0.95).describe('Level of intervals.'),
    })
    .prefault({})
    .describe('Comparison on the test split.'),
  workers: z
    .strictObject({
      pool: z
        .string()
        .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'lower-case letters, digits and dashes')
        .optional()
        .describe('CAMPAIGN_POOL of your workers.'),
      gpuSlots: count.default(1).describe('Parallel trainers.'),
      gpusPerTrainer: whole.default(0).describe('GPUs of one trainer; 0: the first visible one.'),
      heartbeatSeconds: from(5)
        .optional()
        .describe('Seconds until a silent worker counts as lost; default: 30, with `pool` 90.'),
      stallSeconds: count.default(1800).describe('Seconds until a silent trainer is killed.'),
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
  const { arms, trainer, training, budget, baseModel } = campaign;
  if ((baseModel.path === undefined) === (baseModel.hub === undefined))
    addIssue(context, ['baseModel'], 'either path, a folder, or hub, the name of a model');
  if (baseModel.revision !== undefined && baseModel.hub === undefined)
    addIssue(context, ['baseModel', 'revision'], 'given with hub; remove it');
  if (trainer.kind === 'tinker' && budget.dollars !== undefined && !trainer.price)
    addIssue(
      context,
      ['trainer', 'price'],
      `given with budget.dollars (${budget.dollars}), which counts by it; add price: { forward, train } in dollars for a million tokens`,
    );
  // A Tinker server does not support these settings.
  const fixed: [path: string[], value: unknown, only: string | number][] = [
    [['training', 'lora', 'dropout'], training.lora.dropout, 0],
    [['training', 'kl'], training.kl, 0],
    [['training', 'temperature'], training.temperature, 1],
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

/** Accepts any kinds of parts, with unchecked options. The schema of campaign files checks the kinds (src/cli/campaign-schema.ts). */
export const campaignSchema = campaignFields.superRefine(checkFields);

export type Campaign = z.infer<typeof campaignSchema> & {
  parts?: {
    /** The language model that the analyst asks, which the reader of campaign files knows; workflows know the kinds of arms only. */
    analystModel?: LanguageModelSpec;
  };
};

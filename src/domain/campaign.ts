/**
 * A campaign: every constant of the method is a field here, with the paper's value as its default (preset `paper`); the other presets are the
 * same method configured small. Unknown fields are errors. The options of a part that is picked by `kind` (target, analyst, synthesizer, router,
 * arms) are its kind's own.
 */
import { z } from 'zod';
import { approvalRuleSchema } from './approval';
import { budgetSchema, keyedUrl, type LanguageModelSpec } from './endpoints';
import { kindSpecSchema } from './kinds';
import { isPolicyName, moeGatesSchema } from './policies';

// The command line names the stages in its help, for which zod is not loaded.
export { stages, type Stage } from './work';

const fraction = z.number().min(0).max(1);
/** Far beyond any campaign; what is larger is a slip. */
const MOST = 1_000_000;
const count = z.number().int().positive().max(MOST);
/** Training rollouts of one adapter. */
const MOST_TRAINING_ROLLOUTS = 10 * MOST;
const band = z.tuple([fraction, fraction]);

/** Answers of the policy in one rollout; an environment's own limit holds as well. */
const maxSteps = count.default(50);

const sampling = (temperature: number) =>
  z
    .strictObject({
      temperature: z.number().min(0).max(2).default(temperature),
      topP: z.number().gt(0).max(1).default(1),
      maxTokens: count.default(512),
    })
    .prefault({});

const loraSchema = z
  .strictObject({
    r: count.default(16),
    alpha: count.default(16),
    dropout: fraction.default(0),
    targetModules: z
      .array(z.string())
      .default(['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj']),
  })
  .prefault({});

const trainingSchema = z
  .strictObject({
    lora: loraSchema,
    learningRate: z.number().min(0).default(1e-5),
    maxGradNorm: z.number().positive().default(1),
    groupSize: z.number().int().min(2).max(MOST).default(16),
    groupsPerStep: count.default(32),
    steps: count.default(20),
    clip: z.number().positive().default(0.2),
    kl: z.number().min(0).default(0),
    temperature: z.number().positive().default(1),
    advantage: z.enum(['group', 'batch']).default('group'),
    /** Of a group's rollouts, on environments that were accepted with hints. */
    hintShare: fraction.default(0.5),
    /** Turns that only read carry no loss. */
    maskReadOnlyTurns: z.boolean().default(true),
    /** A checkpoint every so many steps; each is a candidate for the best iteration. */
    checkpointEvery: count.default(5),
    /** Torch threads of a trainer process. */
    threads: count.default(8),
    /** Of the base model's weights in the trainer; the adapter's follow. */
    dtype: z.enum(['float32', 'bfloat16']).default('float32'),
    /** Padded tokens of one forward pass; a longer row goes alone. */
    tokensPerForward: count.default(4096),
    /** Computes activations twice to hold fewer of them: long conversations of a large model need it. */
    gradientCheckpointing: z.boolean().default(false),
  })
  .superRefine(({ steps, groupsPerStep, groupSize }, context) => {
    const rollouts = steps * groupsPerStep * groupSize;
    // A field that is too large by itself has a message of its own.
    if (rollouts > MOST_TRAINING_ROLLOUTS && Math.max(steps, groupsPerStep, groupSize) <= MOST)
      context.addIssue({
        code: 'custom',
        path: ['steps'],
        message: `at most ${Math.floor(MOST_TRAINING_ROLLOUTS / groupsPerStep / groupSize)} with groupsPerStep ${groupsPerStep} and groupSize ${groupSize}: these are ${rollouts} rollouts for an adapter, of at most ${MOST_TRAINING_ROLLOUTS}`,
      });
  })
  .prefault({});
export type Training = z.infer<typeof trainingSchema>;

export const calibrationBandsSchema = z
  .strictObject({
    seeds: count.default(100),
    rolloutsPerSeed: count.default(16),
    temperature: z.number().positive().default(1),
    maxRounds: count.default(5),
    meanReward: band.default([0.2, 0.6]),
    successRate: band.default([0.2, 0.6]),
    /** Of the instances of each branch that is judged: what is never solved there is not learned, however often its twin is. */
    minBranchSuccess: fraction.default(0),
    maxAllSuccess: fraction.default(0.2),
    maxAllZero: fraction.default(0.2),
    maxConstant: fraction.default(0.5),
    minInformative: fraction.default(0.5),
    minRewardStd: z.number().min(0).default(0.05),
    /** Of a seed's rollouts, when an environment that is too hard is calibrated once more with its hints; 0: it is not. */
    hintShare: fraction.default(0.5),
  })
  .prefault({});
export type CalibrationBands = z.infer<typeof calibrationBandsSchema>;

export const selectionRuleSchema = z
  .strictObject({
    maxCandidates: count.default(10),
    passes: count.default(10),
    rho: fraction.default(0.1),
    delta: fraction.default(0.2),
    votes: count.default(8),
    evidence: count.default(8),
  })
  .prefault({});
export type SelectionRule = z.infer<typeof selectionRuleSchema>;

/** Of every kind of router: the outcome matrix that it is fitted on. */
export const outcomeMatrixFields = {
  /** Tasks of the train split in the outcome matrix. */
  tasks: count.default(200),
  trials: count.default(1),
  /** One more option for each: all adapters behind a gate inside the model, which is trained on the successes in the outcome matrix. */
  moeGates: moeGatesSchema,
};

export const armNameSchema = z
  .string()
  .regex(/^[a-z][a-z0-9_]{0,62}$/, 'a name of lower-case letters, digits and underscores')
  .refine((name) => !isPolicyName(name), 'another name: the report has this one already');

/** What an arm is called: its kind unless the file says otherwise. */
export const armName = ({ kind, name }: { kind: string; name?: string | undefined }): string => name ?? kind;

/** Without what has to hold between its fields. */
export const campaignFields = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'lower-case letters, digits and dashes'),
  seed: z.number().int().min(0).default(1),
  /** Of trainings alone, instead of `seed`: campaigns that differ in it share everything up to the first training. */
  trainingSeed: z.number().int().min(0).optional(),
  target: kindSpecSchema,
  baseModel: z.strictObject({
    /** Folder with weights and tokenizer; relative to the campaign file. */
    path: z.string(),
  }),
  policyServer: z
    .discriminatedUnion('kind', [
      z.strictObject({
        kind: z.literal('embedded'),
        maxBatch: count.default(64),
        threads: count.default(2),
      }),
      z.strictObject({
        kind: z.literal('vllm'),
        url: keyedUrl('POLICY_SERVER_API_KEY holds the key'),
        /** What it calls the base model. A server of another one is refused. */
        model: z.string().min(1).optional(),
        /** Tokens of a whole conversation: vLLM's --max-model-len. A server with another limit is refused. */
        contextTokens: count.default(32_768),
        /** GPUs that it runs on, for the hours that `campaign plan` counts. */
        gpus: count.default(1),
      }),
    ])
    .prefault({ kind: 'embedded' }),
  rollouts: z
    .strictObject({
      /** Tasks of the train split that are rolled out by the base model; the rest is held out. */
      tasks: count.default(400),
      perTask: count.default(1),
      concurrency: count.default(64),
      sampling: sampling(0.7),
      maxSteps,
      /** Attempts at a rollout that breaks for reasons outside the policy. */
      maxAttempts: count.default(3),
      /** A batch, whatever it is for, stops once a larger share of it is broken. */
      maxBrokenShare: fraction.default(0.1),
    })
    .prefault({}),
  selection: selectionRuleSchema,
  analyst: kindSpecSchema.prefault({ kind: 'rules' }),
  synthesizer: kindSpecSchema.prefault({ kind: 'generators' }),
  /** Of all language models together: those of analyst, synthesizer and arms, and those that play users and judges. */
  budget: budgetSchema.prefault({}),
  /** What waits for a person's approval. */
  approval: approvalRuleSchema,
  calibration: calibrationBandsSchema,
  training: trainingSchema,
  /** One more adapter, trained from the sum of the others on their environments mixed. */
  composites: z
    .strictObject({
      /** Of all training rollouts of the selected capabilities, what it takes; 0: there is none. */
      share: z.number().min(0).lt(1).default(0),
    })
    .prefault({}),
  validation: z
    .strictObject({
      /** Held-out seeds of the synthesized environment: they pick the best iteration and validate it. */
      seeds: count.default(100),
      /** Held-out tasks of the target's train split. */
      targetTasks: count.default(60),
      trials: count.default(1),
    })
    .prefault({}),
  /** Its other fields are the kind's own. */
  router: kindSpecSchema.extend({ kind: z.string().default('learned'), ...outcomeMatrixFields }).prefault({}),
  /** Baselines at as many training rollouts as `trace`: each `{kind, name?, options}`. */
  arms: z.array(kindSpecSchema.extend({ name: armNameSchema.optional() })).default([{ kind: 'grpo_target' }]),
  evaluation: z
    .strictObject({
      tasks: count.default(200),
      /** Test tasks that are left out, from the target's first: those that were read while the campaign was made. */
      skip: z.number().int().min(0).default(0),
      trials: count.default(1),
      sampling: sampling(0),
      maxSteps,
      confidence: z.number().gt(0).lt(1).default(0.95),
    })
    .prefault({}),
  workers: z
    .strictObject({
      /**
       * Whose workers make the rollouts and trainings: their CAMPAIGN_POOL. Without it those that `campaign run` starts, a pool of this
       * store and this base model.
       */
      pool: z
        .string()
        .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'lower-case letters, digits and dashes')
        .optional(),
      /** Trainers that run at once: one per GPU group. */
      gpuSlots: count.default(1),
      /** GPUs of one trainer: the worker deals out those that it sees. 0: every trainer sees what the worker sees. */
      gpusPerTrainer: z.number().int().min(0).default(0),
      /**
       * A step that shows no progress for so long is given to another worker, and a trainer that does not work for nearly so long is
       * ended. Progress is a message, a finished rollout, or processor time that the trainer has used.
       */
      heartbeatSeconds: z.number().int().min(20).max(MOST).default(600),
      /** How long a trainer that has the turn may say nothing, however busy: longer than its longest optimizer step. */
      stallSeconds: count.default(1800),
    })
    .superRefine(({ heartbeatSeconds, stallSeconds }, context) => {
      if (stallSeconds < heartbeatSeconds)
        context.addIssue({
          code: 'custom',
          path: ['stallSeconds'],
          message: `at least workers.heartbeatSeconds (${heartbeatSeconds}); set it to that or more`,
        });
    })
    .prefault({}),
});

/** What has to hold between fields, whatever the kinds of the parts. */
export function checkFields(
  { policyServer, router, arms }: z.infer<typeof campaignFields>,
  context: z.RefinementCtx<z.infer<typeof campaignFields>>,
): void {
  if (policyServer.kind === 'vllm' && router.moeGates.length > 0)
    context.addIssue({
      code: 'custom',
      path: ['router', 'moeGates'],
      message:
        'left out with policyServer.kind vllm, which serves no gate; remove it, or set policyServer.kind to embedded',
    });
  const names = arms.map(armName);
  const twice = names.find((name, n) => names.indexOf(name) !== n);
  if (twice !== undefined)
    context.addIssue({
      code: 'custom',
      path: ['arms'],
      message: `a list of arms of which each has a name of its own; ${twice} is there twice`,
    });
}

/** With any kinds of parts: their options are left as they are. The reader of campaign files knows the kinds (src/cli/campaign-schema.ts). */
export const campaignSchema = campaignFields.superRefine(checkFields);

/** What the kinds of its parts say of them. Found where the file is read: workflows know no kinds but those of arms. */
export interface PartFacts {
  /** The language model that the analyst asks, where it asks one. */
  analystModel?: LanguageModelSpec;
  /** Seconds for which analysis and synthesis, and rollouts, may show no progress since they wait for others; 0 where they wait for nobody. */
  maxSilenceSeconds: { analysis: number; rollouts: number };
}

export type Campaign = z.infer<typeof campaignSchema> & { parts?: PartFacts };

/** How GEPA searches for a prompt; the defaults are GEPA's own, but for the number of validation tasks, which it leaves to its user. */
export const promptSearchFields = {
  /** Where the search begins. Empty: the base model as it is, or, `instead`, the target's written policy. */
  prompt: z.string().default(''),
  /** Before the environment's system message, which stays, or in its place. */
  place: z.enum(['before', 'instead']).default('before'),
  /** Of the discovery tasks, those that prompts are chosen by; prompts are written from the others. */
  validationTasks: count.default(50),
  /** Rollouts that one reflection reads. */
  minibatchSize: count.default(3),
  candidateSelection: z.enum(['pareto', 'current_best', 'epsilon_greedy', 'top_k_pareto']).default('pareto'),
  /** Of a new prompt on its minibatch, against the one that it was made of. */
  acceptance: z.enum(['strict_improvement', 'improvement_or_equal']).default('strict_improvement'),
  /** How often two prompts are merged at most. */
  merges: z.number().int().min(0).default(0),
};
export type PromptSearch = z.infer<z.ZodObject<typeof promptSearchFields>>;

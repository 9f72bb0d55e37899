/** Trains one LoRA with GRPO on rollouts. A training that has ended is found by its key. */
import { digest } from '../store/hash';
import type { Trainer } from '../domain/campaign';
import { type LearningOptions, runLearner } from '../training/run-learner';
import { tinkerKeys, tinkerPython, tinkerUrl } from '../policy/tinker';
import { type GpuDependencies, modelFolder } from './context';
import { ledgerOf } from './ledger';
import { progress } from './heartbeat';
import { openTraining } from './tasks';
import type { TrainInput } from './types';
import type { TrainingResult } from '../domain/results';

/** Part of the key: increase it when the same job would train other weights. */
const TRAINER_VERSION = '5';

export async function train(deps: GpuDependencies, input: TrainInput): Promise<TrainingResult> {
  progress({ kind: 'train', waitsFor: 'its tasks to be looked at' });
  const { environment, tasks, run, batch } = await openTraining(deps, input);
  const job = jobOf(input, tasks);
  const { maker, base, maxSteps, maxTokens, thinking, trainer } = input;
  const server = trainer.kind === 'tinker' ? trainer : undefined;
  const { maskReadOnlyTurns, steps, temperature, checkpointEvery } = input.training;
  const id = digest({
    version: TRAINER_VERSION,
    maker,
    job,
    ...environment,
    base,
    maxSteps,
    maxTokens,
    ...(thinking && { thinking }),
    maskReadOnlyTurns,
    // Wherever it is: the same server may move.
    ...(server && { tinker: { model: server.model } }),
  });
  return deps.gpus.use((env) =>
    runLearner(deps, {
      ...run,
      id,
      ...(server ? { program: 'tinker', python: tinkerPython() } : { program: 'train' }),
      env,
      ...(server ? { keys: tinkerKeys() } : reporterKeys(input.training)),
      async prepare(folder) {
        const base_model = await modelFolder(deps, base);
        return {
          // A killed host costs one update: the learner saves every step, of which those at `checkpointEvery` are candidates.
          job: {
            ...{ ...job, checkpoint_every: 1, base_model, output_dir: folder },
            report_to: input.training.reportTo,
            processes: server ? 1 : (env['CUDA_VISIBLE_DEVICES'] ?? '').split(',').length,
            ...(server && { url: tinkerUrl(server), server_model: server.model ?? null }),
          },
          learning: {
            base,
            steps,
            checkpointEvery,
            ...(server && { bill: billOf(deps, input, server) }),
            batch: {
              ...batch,
              sampling: { temperature, topP: 1, maxTokens, thinking },
              maskReadOnlyTurns,
              everyStepAnew: true,
            },
          },
        };
      },
    }),
  );
}

/** The key of the service that a trainer reports its curves to; no other program is given it. */
const reporterKeys = ({ reportTo }: Pick<TrainInput['training'], 'reportTo'>): { keys?: NodeJS.ProcessEnv } =>
  reportTo === 'wandb' ? { keys: { WANDB_API_KEY: process.env['WANDB_API_KEY'] } } : {};

/** Counts the tokens of a Tinker server for the campaign's budget. */
function billOf(
  { store }: GpuDependencies,
  { campaign, budget, name }: TrainInput,
  { price }: Extract<Trainer, { kind: 'tinker' }>,
): NonNullable<LearningOptions['bill']> {
  const ledger = ledgerOf({ store, campaign, budget, role: 'trainer' });
  const prices = price && { input: price.forward, output: price.train };
  return {
    permit: (ended) => ledger.permit({ ended, field: 'trainer', price: prices }),
    count: ({ forward, trained }) =>
      ledger.count({
        step: `training: ${name}`,
        usage: { promptTokens: forward, cachedTokens: 0, completionTokens: trained },
        price: prices,
      }),
  };
}

/** Fields of `training` that are no fields of job.json, or do not decide the weights. */
const OF_BATCHES = ['maskReadOnlyTurns', 'reportTo'];

const jobFields = (fields: object, without: readonly string[] = []): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => !without.includes(name))
      .map(([name, value]) => [
        name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        typeof value === 'object' && !Array.isArray(value) ? jobFields(value as object) : (value as unknown),
      ]),
  );

/** Returns job.json without its folders: the fields that determine the weights. */
const jobOf = ({ training, seed }: TrainInput, tasks: string[]): object => ({
  importance_sampling_clip_max: null,
  ...jobFields(training, OF_BATCHES),
  seed,
  tasks,
});

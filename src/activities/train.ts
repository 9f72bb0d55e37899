/**
 * Trains one LoRA with GRPO on rollouts, and puts the modules that an arm trains on into the store. A training that has ended is found by its key.
 */
import { join } from 'node:path';
import { digest, sha256 } from '../store/hash';
import type { ArtifactRef } from '../domain/artifacts';
import type { Trainer } from '../domain/campaign';
import type { Purpose } from '../domain/rollout';
import { lookAt } from '../rollout/shown';
import { type LearningOptions, runLearner } from '../training/run-learner';
import { tinkerKeys, tinkerPython, tinkerUrl } from '../policy/tinker';
import { type GpuDependencies, ledgerOf, modelFolder, type Dependencies } from './context';
import { activitySignal, markProgress, progress } from './heartbeat';
import { inputsOf, resolveTasks, TEST_TEXTS } from './tasks';
import type { TrainInput } from './types';
import type { TrainingResult } from '../domain/results';
import { readFile } from 'node:fs/promises';
import { moduleFiles } from '../sandbox/source';

const TRAINING: Purpose = 'training';
/** Changes whenever the same job would come to other weights. */
const TRAINER_VERSION = '5';

export async function train(deps: GpuDependencies, input: TrainInput): Promise<TrainingResult> {
  const { store } = deps;
  progress({ kind: 'train', waitsFor: 'its tasks to be looked at' });
  const { campaign, budget } = input;
  const read = deps.environments.paidBy({ campaign, budget, step: TEST_TEXTS });
  const tasks = await resolveTasks({ store, environments: read }, input);
  const job = jobOf(input, tasks);
  const { name, maker, base, maxSteps, maxTokens, thinking, trainer } = input;
  const server = trainer?.kind === 'tinker' ? trainer : undefined;
  const { maskReadOnlyTurns, steps, temperature, checkpointEvery } = input.training;
  const environment = await deps.environments.paidBy({ campaign, budget, step: TRAINING }).get(input.environment);
  const { name: environmentName, version, plugin } = await environment.describe();
  const { seed, concurrency } = input;
  const signal = activitySignal();
  const shown = await lookAt({ environment, tasks, seed, campaign, concurrency, signal });
  const id = digest({
    version: TRAINER_VERSION,
    maker,
    job,
    environment: [environmentName, version, ...tasks.map((task) => shown.get(task) ?? null)],
    plugin,
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
      campaign,
      name,
      id,
      ...(server ? { program: 'tinker', python: tinkerPython() } : { program: 'train' }),
      show: progress,
      onDurable: markProgress,
      signal,
      limits: input,
      env,
      ...(server ? { keys: tinkerKeys() } : reporterKeys(input.training)),
      async prepare(folder) {
        const base_model = await modelFolder(deps, base);
        return {
          // A killed host costs one update: the learner saves every step, of which those at `checkpointEvery` are candidates.
          job: {
            shard_base: !server && process.env['CAMPAIGN_SHARD_BASE'] === '1',
            ...{ ...job, checkpoint_every: 1, base_model, output_dir: folder },
            report_to: input.training.reportTo,
            // One for each GPU that it is dealt.
            processes: server ? 1 : (env['CUDA_VISIBLE_DEVICES'] ?? '').split(',').length,
            ...(server && { url: tinkerUrl(server), server_model: server.model ?? null }),
          },
          learning: {
            base,
            steps,
            checkpointEvery,
            ...(server && { bill: billOf(deps, input, server) }),
            batch: {
              campaign,
              environment,
              sampling: { temperature, topP: 1, maxTokens, thinking },
              maxSteps,
              seed: input.seed,
              concurrency: input.concurrency,
              maxAttempts: input.maxAttempts,
              inputs: inputsOf(input),
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

/** What a Tinker server is paid for, on the campaign's account. */
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

/** Fields as job.json calls them, `tokensPerForward` as tokens_per_forward. */
const jobFields = (fields: object, without: readonly string[] = []): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(fields)
      .filter(([name]) => !without.includes(name))
      .map(([name, value]) => [
        name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        typeof value === 'object' && !Array.isArray(value) ? jobFields(value as object) : (value as unknown),
      ]),
  );

/** job.json without its folders: what decides the weights, wherever it lies. */
const jobOf = ({ training, seed }: TrainInput, tasks: string[]): object => ({
  importance_sampling_clip_max: null,
  ...jobFields(training, OF_BATCHES),
  seed,
  tasks,
});

/** The modules of a folder, by the names of their files. */
export async function takeModules(
  { store }: Pick<Dependencies, 'store'>,
  { folder }: { folder: string },
): Promise<{ file: string; module: ArtifactRef }[]> {
  const taken = [];
  for (const file of await moduleFiles(folder)) {
    const body = await readFile(join(folder, file));
    const about = { producer: 'takeModules', inputs: [], mediaType: 'text/javascript' };
    taken.push({ file, module: await store.put({ key: `module/${sha256(body)}`, ...about, body }) });
  }
  return taken;
}

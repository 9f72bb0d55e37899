/** The state that the stages of a campaign share, and their helpers. */
import { ApplicationFailure } from '@temporalio/workflow';
import type { RollOutInput } from '../activities/types';
import { type BaseCheck, unsuitedText } from '../domain/base-check';
import type { Campaign } from '../domain/campaign';
import type { FailureType } from '../domain/failures';
import { policyNames, mergedName, mergedPolicy } from '../domain/policies';
import type { CampaignRecord, ChildResult, Subset, Prepared } from '../domain/results';
import type { FixedPolicy, RolloutSummary } from '../domain/rollout';
import type { CampaignStatus } from './status';
import { basePolicy, type Batch, ownStore, planTasks, policyChecks, rollOut } from './steps';

export interface Run {
  config: Campaign;
  prepared: Prepared;
  /** Continues with a base model that fails its check. */
  force: boolean;
  /** False if the campaign stops before its trainings. */
  trains: boolean;
  status: CampaignStatus;
  /** Filled by the stages in their order. */
  results: Partial<CampaignRecord>;
}

export interface Option {
  name: string;
  policy: FixedPolicy;
}

export type TargetBatch = Omit<Batch, 'environment' | 'tasks'> & { tasks: Subset };

/** Runs a batch on a subset of the target's tasks, and counts it in the campaign's progress. */
export async function rollOutTarget(
  { config, prepared, status }: Run,
  { tasks, ...batch }: TargetBatch,
): Promise<RolloutSummary> {
  const onTarget = { ...batch, environment: config.target, tasks: planTasks(prepared.plan, tasks) };
  return status.count(await rollOut(config, onTarget));
}

/** The merged adapters are among them once they are known. */
export const routerOptions = (run: Run): Option[] => [
  { name: policyNames.base, policy: basePolicy(run.prepared.base) },
  ...adapters(run),
  ...(run.results.router?.merged ?? []).map((names) => mergedOption(run, names)),
];

export const evaluatedOptions = (run: Run): Option[] => [...routerOptions(run), ...bestPolicies(run.results.arms)];

export function mergedOption(run: Run, names: readonly string[]): Option {
  const policies = adapters(run).flatMap(({ name, policy }) => (names.includes(name) ? [policy] : []));
  return { name: mergedName(names), policy: mergedPolicy(run.prepared.base, policies) };
}

export const adapters = ({ results }: Run): Option[] => bestPolicies(results.capabilities);

const bestPolicies = (children: readonly ChildResult[] = []): Option[] =>
  children.flatMap(({ name, best }) => (best ? [{ name, policy: best.policy }] : []));

/** Returns a result of an earlier stage. */
export function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a stage ran before the one it needs');
  return value;
}

/** Checks on the first of the base rollouts that the base model can work on the target. */
export async function checkBase({ config, force }: Run, batch: RollOutInput): Promise<BaseCheck> {
  const check = await policyChecks(config, 'check the base model').checkBase({ store: ownStore(), rollouts: batch });
  if (check.problems.length > 0 && !force)
    throw ApplicationFailure.nonRetryable(unsuitedText(check), 'BaseUnsuited' satisfies FailureType);
  return check;
}

/** Checks that vLLM, whose limits are fixed when it starts, takes so many adapters merged into one. */
export async function checkAdapters({ config, prepared }: Run, merged: number): Promise<void> {
  if (config.policyServer.kind !== 'vllm') return;
  const { r, targetModules } = config.training.lora;
  await policyChecks(config, merged === 1 ? 'try an adapter' : `try ${merged} merged adapters`).checkAdapters({
    ...{ store: ownStore(), base: prepared.base, lora: { r, targetModules }, merged },
  });
}

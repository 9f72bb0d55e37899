/** The state that the stages of a campaign share, the policies that can be sampled, and helpers that several stages call. */
import { ApplicationFailure } from '@temporalio/workflow';
import type { RollOutInput } from '../activities/types';
import { type BaseCheck, unsuitedText } from '../domain/base-check';
import type { Campaign } from '../domain/campaign';
import type { FailureType } from '../domain/failures';
import { policyNames, sumName, sumPolicy } from '../domain/policies';
import type { CampaignRecord, ChildResult, Subset, Prepared } from '../domain/results';
import type { FixedPolicy, RolloutSummary } from '../domain/rollout';
import type { CampaignStatus } from './status';
import { basePolicy, ownStore, part, policyChecks, rollOut } from './steps';

export interface Run {
  config: Campaign;
  prepared: Prepared;
  /** Continues with a base model that can't work on the target. */
  force: boolean;
  /** True if the campaign reaches the stages that train. */
  trains: boolean;
  /** Results of children of an earlier start; these children are not run again. */
  kept: readonly ChildResult[];
  status: CampaignStatus;
  found: Partial<CampaignRecord>;
}

/** A named policy without a router. */
export interface Option {
  name: string;
  policy: FixedPolicy;
}

/** Runs a batch of rollouts on a subset of the target's tasks, and counts it in the campaign's progress. */
export async function rollOutTarget(
  { config, prepared, status }: Run,
  {
    tasks,
    ...input
  }: Pick<RollOutInput, 'purpose' | 'title' | 'policy' | 'attempts'> &
    Partial<Omit<RollOutInput, 'tasks'>> & { tasks: Subset },
): Promise<RolloutSummary> {
  const batch = { environment: config.target, tasks: part(prepared.plan, tasks), ...input };
  return status.count(await rollOut(config, batch));
}

/** Returns the options of the router: the base, every adapter, and the sums once they are known. */
export const routerOptions = (run: Run): Option[] => [
  { name: policyNames.base, policy: basePolicy(run.prepared.base) },
  ...adapters(run),
  ...(run.found.router?.sums ?? []).map((parts) => sumOption(run, parts)),
];

/** Returns the policies that are evaluated besides the routed one. */
export const options = (run: Run): Option[] => [...routerOptions(run), ...bestPolicies(run.found.arms)];

export function sumOption(run: Run, parts: readonly string[]): Option {
  const policies = parts.map((part) => required(adapters(run).find(({ name }) => name === part)).policy);
  return { name: sumName(parts), policy: sumPolicy(run.prepared.base, policies) };
}

export const adapters = ({ found }: Run): Option[] => bestPolicies(found.capabilities);

const bestPolicies = (children: readonly ChildResult[] = []): Option[] =>
  children.flatMap(({ name, best }) => (best ? [{ name, policy: best.policy }] : []));

/** Returns a result of an earlier stage, which exists because the campaign runs the stages in order. */
export function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a stage ran before the one it needs');
  return value;
}

/** Checks on the first of the base rollouts (`batch`) that the base model can work on the target. Throws BaseUnsuited unless forced. */
export async function checkBase({ config, force }: Run, batch: RollOutInput): Promise<BaseCheck> {
  const found = await policyChecks(config, 'check the base model').checkBase({ store: ownStore(), rollouts: batch });
  if (found.problems.length > 0 && !force)
    throw ApplicationFailure.nonRetryable(unsuitedText(found), 'BaseUnsuited' satisfies FailureType);
  return found;
}

/** Checks that vLLM takes `summed` adapters merged into one: its ranks, modules and folders are fixed when it starts. The embedded server needs no check. */
export async function checkAdapters({ config, prepared }: Run, summed: number): Promise<void> {
  if (config.policyServer.kind !== 'vllm') return;
  const { r, targetModules } = config.training.lora;
  await policyChecks(config, summed === 1 ? 'try an adapter' : `try a sum of ${summed} adapters`).checkAdapters({
    ...{ store: ownStore(), base: prepared.base, lora: { r, targetModules }, summed },
  });
}

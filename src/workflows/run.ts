/** What the stages of a campaign share: its configuration, its results so far, the policies that can be sampled, and how a batch of rollouts is run. */
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
  /** Go on with a base model that can't work on the target. */
  force: boolean;
  /** Whether it goes on to the stages that train. */
  trains: boolean;
  /** Children of an earlier start whose results stay as they are. */
  kept: readonly ChildResult[];
  status: CampaignStatus;
  found: Partial<CampaignRecord>;
}

/** A policy that every conversation of a batch is given to. */
export interface Option {
  name: string;
  policy: FixedPolicy;
}

/** A counted batch of rollouts on a part of the target's tasks. */
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

/** What the router may choose: base, every trained adapter, and the sums, once these are known. */
export const routerOptions = (run: Run): Option[] => [
  { name: policyNames.base, policy: basePolicy(run.prepared.base) },
  ...adapters(run),
  ...(run.found.router?.sums ?? []).map((parts) => sumOption(run, parts)),
];

/** The policies that are evaluated beside the routed one. */
export const options = (run: Run): Option[] => [
  ...routerOptions(run),
  ...(run.found.arms ?? []).flatMap(({ name, best }) => (best ? [{ name, policy: best.policy }] : [])),
];

export function sumOption(run: Run, parts: readonly string[]): Option {
  const policies = parts.map((part) => required(adapters(run).find(({ name }) => name === part)).policy);
  return { name: sumName(parts), policy: sumPolicy(run.prepared.base, policies) };
}

export const adapters = ({ found }: Run): Option[] =>
  (found.capabilities ?? []).flatMap(({ name, trained }) => (trained ? [{ name, policy: trained.best.policy }] : []));

/** A stage reads what earlier stages left; the campaign runs them in order. */
export function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a stage ran before the one it needs');
  return value;
}

/** `batch`: the base rollouts. */
export async function checkBase({ config, force }: Run, batch: RollOutInput): Promise<BaseCheck> {
  const found = await policyChecks(config, 'check the base model').checkBase({ store: ownStore(), rollouts: batch });
  if (found.problems.length > 0 && !force)
    throw ApplicationFailure.nonRetryable(unsuitedText(found), 'BaseUnsuited' satisfies FailureType);
  return found;
}

/** Of vLLM, which is told its ranks, modules and folders as it is started: the embedded server takes what the trainer makes. `summed`: so many as one. */
export async function checkAdapters({ config, prepared }: Run, summed: number): Promise<void> {
  if (config.policyServer.kind !== 'vllm') return;
  const { r, targetModules } = config.training.lora;
  await policyChecks(config, summed === 1 ? 'try an adapter' : `try a sum of ${summed} adapters`).checkAdapters({
    ...{ store: ownStore(), base: prepared.base, lora: { r, targetModules }, summed },
  });
}

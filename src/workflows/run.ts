/** What the stages of a campaign share: its configuration, its results so far, the policies that can be sampled, and how a batch of rollouts is run. */
import { ApplicationFailure } from '@temporalio/workflow';
import type { RollOutInput } from '../activities/types';
import { type BaseCheck, unsuitedText } from '../domain/base-check';
import type { Campaign } from '../domain/campaign';
import type { FailureType } from '../domain/failures';
import { policyNames, sumName, sumPolicy } from '../domain/policies';
import type { EndedArm, EndedCapability, KeptRecord, Subset, Prepared } from '../domain/results';
import type { FixedPolicy, RolloutSummary } from '../domain/rollout';
import type { ArmKind } from './arms/arm';
import type { CampaignStatus } from './status';
import { activity, basePolicy, part, rollOut } from './steps';

export interface Run {
  config: Campaign;
  /** The kinds of arms that there are. */
  arms: readonly ArmKind[];
  prepared: Prepared;
  /** Go on with a base model that can't work on the target. */
  force: boolean;
  /** Whether it goes on to the stages that train. */
  trains: boolean;
  /** Children of an earlier start whose results stay as they are. */
  kept: readonly (EndedCapability | EndedArm)[];
  status: CampaignStatus;
  found: Partial<KeptRecord>;
}

/** A policy that every conversation of a batch is given to. */
export interface Option {
  name: string;
  policy: FixedPolicy;
  /** Whether the router may choose it. */
  routable: boolean;
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

/** Base, every trained adapter, what the arms came to, and the sums that the router may choose, once these are known. */
export function options(run: Run): Option[] {
  const { prepared, found } = run;
  return [
    { name: policyNames.base, policy: basePolicy(prepared.base), routable: true },
    ...adapters(run),
    ...(found.router?.sums ?? []).map((parts) => sumOption(run, parts)),
    ...(found.arms ?? []).flatMap(({ name, best, routable }) =>
      best ? [{ name, policy: best.policy, routable }] : [],
    ),
  ];
}

export function sumOption(run: Run, parts: readonly string[]): Option {
  const policies = parts.map((part) => required(adapters(run).find(({ name }) => name === part)).policy);
  return { name: sumName(parts), policy: sumPolicy(run.prepared.base, policies), routable: true };
}

export const adapters = ({ found }: Run): Option[] =>
  (found.capabilities ?? []).flatMap(({ name, trained }) =>
    trained ? [{ name, policy: trained.best.policy, routable: true }] : [],
  );

/** A stage reads what earlier stages left; the campaign runs them in order. */
export function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a stage ran before the one it needs');
  return value;
}

/** `batch`: the base rollouts. */
export async function checkBase({ config, force }: Run, batch: RollOutInput): Promise<BaseCheck> {
  const found = await activity(config, 'check the base model').checkBase({ rollouts: batch });
  if (found.problems.length > 0 && !force)
    throw ApplicationFailure.nonRetryable(unsuitedText(found), 'BaseUnsuited' satisfies FailureType);
  return found;
}

/** Of vLLM, which is told its ranks, modules and folders as it is started: the embedded server takes what the trainer makes. `summed`: so many as one. */
export async function checkAdapters({ config, prepared }: Run, summed: number): Promise<void> {
  if (config.policyServer.kind !== 'vllm') return;
  const { r, targetModules } = config.training.lora;
  await activity(config, summed === 1 ? 'try an adapter' : `try a sum of ${summed} adapters`).checkAdapters({
    ...{ base: prepared.base, lora: { r, targetModules }, summed },
  });
}

/** What the stages of a campaign share: its configuration, what was prepared, what was found so far, and how a step is run. */
import type { Campaign } from '../domain/campaign';
import type { CampaignRecord, PlanPart, Prepared, RolloutSummary } from '../domain/results';
import type { Policy } from '../domain/rollout';
import type { RollOutInput } from '../activities/types';
import type { CampaignStatus } from './campaign-status';
import { adapterPolicy, basePolicy, part, rollOut } from './steps';

export interface Run {
  config: Campaign;
  prepared: Prepared;
  status: CampaignStatus;
  found: Partial<CampaignRecord>;
}

export interface Option {
  option: string;
  policy: Policy;
}

/** A counted batch of rollouts on a part of the target's tasks. */
export async function rollOutTarget(
  { config, prepared, status }: Run,
  {
    tasks,
    ...input
  }: Pick<RollOutInput, 'purpose' | 'policy' | 'attempts'> &
    Partial<Omit<RollOutInput, 'tasks'>> & { tasks: PlanPart | RollOutInput['tasks'] },
): Promise<RolloutSummary> {
  const set = typeof tasks === 'string' ? part(prepared.plan, tasks) : tasks;
  const batch = { environment: config.target, tasks: set, ...input };
  return status.count(await status.gate.step(() => rollOut(config, batch)));
}

/** Base, every trained adapter, and the arms that trained: what one conversation can be given to. */
export function policies({ prepared, found }: Run): Option[] {
  const trained = [...(found.capabilities ?? []), ...(found.arms ?? [])];
  return [
    { option: 'base', policy: basePolicy(prepared.base) },
    ...trained.flatMap(({ name, trained: t }) =>
      t ? [{ option: name, policy: adapterPolicy(prepared.base, t.best.adapter) }] : [],
    ),
  ];
}

/** The same tasks with every option. */
export function rollOutEach(
  run: Run,
  { options, purpose, ...input }: { options: Option[]; purpose: string; tasks: PlanPart; attempts: number },
): Promise<{ option: string; rollouts: RolloutSummary }[]> {
  return Promise.all(
    options.map(async ({ option, policy }) => ({
      option,
      rollouts: await rollOutTarget(run, { purpose: `${purpose}: ${option}`, policy, ...input }),
    })),
  );
}

/** A stage reads what earlier stages left; the campaign runs them in order. */
export function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('a stage ran before the one it needs');
  return value;
}

/**
 * Which arms a campaign has, in the order of the report: base, adapters, sums of them, the routed policy, baselines, the bound of routing. Invariant: what
 * should have been evaluated and was not is a row with its reason.
 */
import type { Role } from '../../domain/reported-arms';
import { partNames } from '../../domain/capability';
import { policyNames, sumName, sumPolicy } from '../../domain/policies';
import type { CampaignRecord, Iteration, TrainingSummary } from '../../domain/results';
import type { FixedPolicy, RolloutSummary } from '../../domain/rollout';
import type { Contents } from './counted';
import { slug } from './figures';
import { spentOn, type Spent } from './spent';

export interface Row {
  name: string;
  role: Role;
  kind?: string;
  /** Names of capabilities. */
  builtOn?: string[];
  conversations?: number;
  routable?: boolean;
  /** Where it is one for all conversations, without the router's choice. */
  policy?: FixedPolicy;
  spent: Spent;
  /** Of its test rollouts; absent where it has none. */
  rollouts?: RolloutSummary;
  /** Of a bound: the options that it is over. */
  union?: string[];
  /** On the held-out train tasks of the target. */
  heldOut?: RolloutSummary;
  work?: { iterations: Iteration[]; best?: Iteration; training?: TrainingSummary };
  /** Why it was not evaluated. */
  reason?: string;
}

export function rowsOf({ record, contents }: { record: CampaignRecord; contents: Contents }): Row[] {
  const { capabilities = [], arms = [], baseHeldOut } = record;
  const { base, routed } = policyNames;
  const on = (name: string) => ({ id: `arms.${slug(name)}`, contents });
  return [
    {
      ...tested(record, base),
      role: 'base',
      policy: { base: record.prepared.base, adapters: [] },
      spent: spentOn.base(on(base)),
      ...(baseHeldOut && { heldOut: baseHeldOut }),
    },
    ...capabilities.flatMap((capability): Row[] => {
      const { name, trained, parts } = capability;
      if (!trained) return [];
      const spent = spentOn.adapter({ ...on(name), capability, record });
      const builtOn = parts && { builtOn: partNames({ parts }) };
      const { policy } = trained.best;
      return [{ ...tested(record, name), role: 'adapter', ...builtOn, policy, spent, heldOut: trained.target.after }];
    }),
    ...(record.router?.sums ?? []).map((parts): Row => {
      const name = sumName(parts);
      const summed = capabilities.filter((capability) => parts.includes(capability.name));
      const policies = summed.flatMap(({ trained }) => (trained ? [trained.best.policy] : []));
      return {
        ...tested(record, name),
        role: 'sum',
        policy: sumPolicy(record.prepared.base, policies),
        spent: spentOn.sum({ ...on(name), capabilities: summed }),
      };
    }),
    ...(record.router?.learned ?? []).map(({ name }): Row => learnedRow({ name, record, contents })),
    { ...tested(record, routed), role: 'routed', spent: spentOn.routed({ ...on(routed), record }) },
    ...arms.map((arm): Row => {
      const { name, kind, routable, builtOn, conversations, iterations = [], best, training, reason } = arm;
      const work = { iterations, ...(best && { best }), ...(training && { training }) };
      return {
        ...tested(record, name),
        role: 'baseline',
        kind,
        routable,
        ...(builtOn && { builtOn }),
        ...(conversations !== undefined && { conversations }),
        spent: spentOn.baseline({ ...on(name), arm, record }),
        ...(best && { heldOut: best.heldOut, policy: best.policy }),
        ...((training ?? iterations.length > 0) && { work }),
        ...(reason !== undefined && { reason }),
      };
    }),
    bound({ record, spent: spentOn.bound({ ...on(policyNames.ceiling), record }) }),
  ];
}

/** A sum too, only that it is behind a gate. */
function learnedRow(o: { name: string; record: CampaignRecord; contents: Contents }): Row {
  const { name, record, contents } = o;
  const on = { id: `arms.${slug(name)}`, contents };
  return { ...tested(record, name), role: 'sum', spent: spentOn.learned({ ...on, record }) };
}

/** Its test rollouts, or why there are none. */
function tested({ evaluation }: CampaignRecord, name: string): Pick<Row, 'name' | 'rollouts' | 'reason'> {
  const rollouts = evaluation?.policies.find((policy) => policy.name === name)?.rollouts;
  const reason = evaluation?.failed.find((policy) => policy.name === name)?.reason;
  return { name, ...(rollouts && { rollouts }), ...(reason !== undefined && { reason }) };
}

/** Over all that the router can choose; unknown where one of them was not evaluated. */
function bound({ record, spent }: { record: CampaignRecord; spent: Spent }): Row {
  const name = policyNames.ceiling;
  const options = record.router?.options ?? [policyNames.base];
  const missing = options.filter((option) => !tested(record, option).rollouts);
  return {
    name,
    role: 'bound',
    spent,
    ...(missing.length === 0
      ? { union: options }
      : { reason: `it is over what the router can choose, and ${missing.join(', ')} was not evaluated` }),
  };
}

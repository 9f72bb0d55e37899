/**
 * The arms on the test split: base, each adapter, merged adapters, the routed policy, the baselines, the oracle; and the solver matrix. Invariant: an arm
 * that could not be evaluated has a row with the reason.
 */
import { digest } from '../../store/hash';
import type { Task } from '../../domain/environment';
import type { TaskMeans } from '../../domain/statistics';
import { policyNames, mergedName, mergedPolicy } from '../../domain/policies';
import type { CampaignRecord } from '../../domain/results';
import type { FixedPolicy, RolloutSummary } from '../../domain/rollout';
import type { Arm, ReportDraft, Role, SolverMatrix } from '../model';
import type { Evidence } from './evidence';
import { differenceFigure, passPowerFigures, rateFigure, slug } from './figures';
import { groupsOf } from './groups';
import { type Spent, spendingOf } from './spending';
import { reportedTraining } from './training';

/** An arm's data apart from its test rollouts. */
type Known = Pick<Arm, 'kind' | 'builtOn' | 'training' | 'reason'> & {
  spent: Spent;
  /** Undefined for the routed policy, the oracle and baselines without a policy. */
  policy?: FixedPolicy | undefined;
  /** Rollouts on the held-out train tasks of the target. */
  heldOut?: RolloutSummary | undefined;
};

export function armsOf(o: {
  record: CampaignRecord;
  evidence: Evidence;
  /** Tasks of the test split. */
  tasks: readonly Task[];
  /** The option that gets every conversation, if routing did not help. */
  constant: string | undefined;
}): Pick<ReportDraft, 'arms' | 'comparisons' | 'groups' | 'solverMatrix'> {
  const { record, evidence, tasks, constant } = o;
  const { evaluation, capabilities = [], router, prepared } = record;
  if (!evaluation) return {};
  const { spentOn, ofCapability, routing, matrix, baseline } = spendingOf(record, evidence);
  const { level, test } = evidence;
  const base = test.get(policyNames.base);
  /** The first arm with each policy, by the policy's content. */
  const firstOf = new Map<string, string>();

  const arm = (name: string, role: Role, { spent, policy, heldOut, reason, ...known }: Known): Arm => {
    const id = `arms.${slug(name)}`;
    const content = policy && contentOf(policy);
    if (content !== undefined && !firstOf.has(content)) firstOf.set(content, name);
    const sameAs = content === undefined ? constant : firstOf.get(content);
    const means = test.get(name);
    const common = {
      name,
      role,
      ...known,
      ...spent,
      sameAs: (content !== undefined || role === 'routed') && sameAs !== name ? sameAs : undefined,
      tasks: means?.tasks.size ?? 0,
      trials: means?.trials ?? 0,
      heldOut: heldOut && rateFigure(`${id}.held_out`, evidence.means(heldOut.ref), level),
    };
    if (!means) {
      const failed = evaluation.failed.find((one) => one.name === name);
      return { ...common, status: 'failed', reason: reason ?? failed?.reason ?? 'it was not evaluated' };
    }
    return {
      ...common,
      successRate: rateFigure(`${id}.success_rate`, means, level),
      passPower: means.trials > 1 ? passPowerFigures(id, means, level) : undefined,
      differenceToBase:
        base && role !== 'base'
          ? differenceFigure({ id: `${id}.difference_to_base`, treatment: means, control: base, level })
          : undefined,
      status: 'completed',
    };
  };

  const options = router?.options ?? [policyNames.base];
  const missing = options.filter((option) => !test.has(option));
  const arms = [
    arm(policyNames.base, 'base', {
      spent: spentOn(policyNames.base, []),
      policy: { base: prepared.base, adapters: [] },
      heldOut: record.baseHeldOut,
    }),
    ...capabilities.flatMap((capability) => {
      const { name, best, validation } = capability;
      if (!best) return [];
      const spent = spentOn(name, [ofCapability(capability)]);
      return [arm(name, 'adapter', { spent, policy: best.policy, heldOut: validation?.target.after })];
    }),
    ...(router?.merged ?? []).map((parts) => {
      const name = mergedName(parts);
      const merged = capabilities.filter((capability) => parts.includes(capability.name));
      const policies = merged.flatMap(({ best }) => best?.policy ?? []);
      // Merging costs no more than its parts.
      const spent = spentOn(name, merged.map(ofCapability));
      return arm(name, 'merged', { spent, policy: mergedPolicy(prepared.base, policies) });
    }),
    arm(policyNames.routed, 'routed', { spent: spentOn(policyNames.routed, [...routing, matrix]) }),
    ...(record.arms ?? []).map((one) => {
      const { name, kind, builtOn, best, reason } = one;
      return arm(name, 'baseline', {
        ...{ kind, builtOn, reason },
        spent: baseline(one),
        policy: best?.policy,
        heldOut: best?.heldOut,
        training: reportedTraining({ evidence, id: `arms.${slug(name)}`, child: one }),
      });
    }),
    arm(policyNames.ceiling, 'oracle', {
      spent: spentOn(policyNames.ceiling, routing),
      reason: `it is over what the router can choose, and ${missing.join(', ')} was not evaluated`,
    }),
  ];
  const columns = new Map(arms.flatMap(({ name }) => (test.has(name) ? [[name, test.get(name)!] as const] : [])));
  return {
    arms,
    comparisons: comparisons(arms, evidence),
    ...groupsOf({ columns, tasks, level, id: 'groups' }),
    solverMatrix: matrixOf(columns),
  };
}

/** Adapters that are the same by content, with the same weights and the same prompt, are one policy. */
const contentOf = ({ adapters, prompt }: FixedPolicy): string =>
  digest({ prompt, adapters: adapters.map(({ ref, weight }) => `${ref.sha256} ${weight}`).sort() });

/** The routed policy minus each baseline. */
function comparisons(arms: readonly Arm[], { test, level }: Evidence): ReportDraft['comparisons'] {
  const arm = policyNames.routed;
  const treatment = test.get(arm);
  return arms.flatMap(({ name: against, role }) => {
    const control = test.get(against);
    if (role !== 'baseline' || !treatment || !control) return [];
    const id = `comparisons.${arm}.${slug(against)}`;
    return [{ arm, against, difference: differenceFigure({ id, treatment, control, level }) }];
  });
}

/** Leaves out the oracle, whose column follows from the others. */
function matrixOf(columns: ReadonlyMap<string, TaskMeans>): SolverMatrix {
  const policies = [...columns].filter(([name]) => name !== policyNames.ceiling);
  const tasks = [...new Set(policies.flatMap(([, means]) => [...means.tasks.keys()]))].sort();
  return {
    tasks,
    options: policies.map(([name]) => name),
    outcomes: tasks.map((task) => policies.map(([, means]) => means.tasks.get(task)?.success ?? null)),
  };
}

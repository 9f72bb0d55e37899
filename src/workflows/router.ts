/**
 * The last two stages. The router stage rolls out the base, the adapters and sums of adapters on the router's tasks of the train split, and fits the
 * router on their outcomes. The evaluation stage rolls out every policy on the test tasks. A policy whose batch fails for good is left out and
 * recorded with its reason. The base may not fail, since everything is compared with it.
 */
import type { RollOutInput } from '../activities/types';
import type { ArtifactRef } from '../domain/artifacts';
import { policyNames, sumName, sumOptions, sumsToTry } from '../domain/policies';
import type { PolicyBatches, RouterResult, Subset } from '../domain/results';
import type { FixedPolicy, Policy, RolloutSummary } from '../domain/rollout';
import { toFailureReason } from './failures';
import { adapters, options, required, rollOutTarget, routerOptions, type Run, sumOption } from './run';
import { mapBounded, ownStore, policyChecks } from './steps';

interface Rolled<P extends Policy = FixedPolicy> {
  name: string;
  policy: P;
  rollouts: RolloutSummary;
}

interface RolledOut<P extends Policy> {
  policies: Rolled<P>[];
  failed: PolicyBatches['failed'];
}

export async function routerStage(run: Run): Promise<void> {
  const single = await rollOutAll(run, routerOptions(run), outcomeMatrix(run));
  const noSums = await whyNoSums(run, single.policies);
  const { sums, tried } = noSums === undefined ? await trySums(run, single.policies) : { sums: [], tried: undefined };
  const triedPolicies = tried?.policies ?? [];
  const names = sums.map(sumName);
  // The router takes the first of equally good options: sums come last, larger ones later.
  const choices = [...single.policies, ...triedPolicies.filter(({ name }) => names.includes(name))];
  run.found.router = {
    ...(await fit(run, choices)),
    options: choices.map(({ name }) => name),
    sums,
    ...(noSums !== undefined && { noSums }),
    policies: [...single.policies, ...triedPolicies].map(withoutPolicy),
    failed: [...single.failed, ...(tried?.failed ?? [])],
  };
}

const outcomeMatrix = ({ config }: Run) =>
  ({ purpose: 'outcome_matrix', title: 'outcome matrix', tasks: 'router', attempts: config.router.trials }) as const;

/**
 * A sum combines what its parts have learned. If no adapter gained anything, a sum differs from the base only by drift, so none is tried; this returns
 * the reason. Returns undefined if an adapter gained, or if there are fewer than two.
 */
async function whyNoSums({ config, found }: Run, single: readonly Rolled[]): Promise<string | undefined> {
  const batches = new Map(single.map(({ name, rollouts }) => [name, rollouts.ref]));
  const base = required(batches.get(policyNames.base));
  const refs = ({ before, after }: Record<'before' | 'after', { ref: ArtifactRef }>) => ({
    before: before.ref,
    after: after.ref,
  });
  const tried = (found.capabilities ?? []).flatMap(({ name, validation }) => {
    const after = batches.get(name);
    if (!validation || !after) return [];
    return [{ name, own: refs(validation.synthesized), target: [refs(validation.target), { before: base, after }] }];
  });
  if (tried.length < 2) return undefined;
  const { gaining } = await policyChecks(config, 'which adapters gain').findGains({
    store: ownStore(),
    adapters: tried,
    confidence: config.evaluation.confidence,
    seed: config.seed,
  });
  if (gaining.length > 0) return undefined;
  return (
    `when the router was fitted, none of the ${tried.length} adapters had gained beyond chance, on held-out seeds of its own environment or on ` +
    "the target's train tasks; if these are too few to show it, raise validation.seeds"
  );
}

/** Rolls out sums of the adapters that could be rolled out alone. Returns the parts of each sum that the router may choose. */
async function trySums(run: Run, single: readonly Rolled[]) {
  const names = adapters(run).flatMap(({ name }) => (single.some((one) => one.name === name) ? [name] : []));
  const all = sumsToTry(names).map((parts) => sumOption(run, parts));
  const tried = await rollOutAll(run, all, outcomeMatrix(run));
  const rates = new Map([...single, ...tried.policies].map(({ name, rollouts }) => [name, rollouts.successRate]));
  return { sums: sumOptions(names, rates), tried };
}

async function fit(
  { config, found }: Run,
  choices: readonly Rolled[],
): Promise<Pick<RouterResult, 'router' | 'reason'>> {
  try {
    return await policyChecks(config, 'fit the router').fitRouter({
      store: ownStore(),
      router: config.router,
      definitions: Object.fromEntries(
        (found.selection?.selected ?? []).map(({ candidate }) => [candidate.name, candidate.definition]),
      ),
      seed: config.seed,
      outcomes: choices.map(({ name, policy, rollouts }) => ({ option: name, policy, rollouts: rollouts.ref })),
    });
  } catch (error) {
    return { reason: `the router was not fitted: ${toFailureReason(error)}` };
  }
}

export async function evaluationStage(run: Run): Promise<void> {
  const { router, reason = '' } = required(run.found.router);
  const routed = router ? [{ name: policyNames.routed, policy: { router } }] : [];
  const batch = { purpose: 'test', title: 'test', tasks: 'test', attempts: run.config.evaluation.trials } as const;
  const { policies, failed } = await rollOutAll<Policy>(run, [...options(run), ...routed], batch);
  run.found.evaluation = {
    policies: policies.map(withoutPolicy),
    failed: [...failed, ...(router ? [] : [{ name: policyNames.routed, reason }])],
  };
}

const withoutPolicy = ({ name, rollouts }: Rolled<Policy>) => ({ name, rollouts });

/** Rolls out every policy on one subset of the target's tasks. Throws if the base's batch fails for good. */
async function rollOutAll<P extends Policy>(
  run: Run,
  all: readonly { name: string; policy: P }[],
  batch: Pick<RollOutInput, 'purpose' | 'title' | 'attempts'> & { tasks: Subset },
): Promise<RolledOut<P>> {
  const ended = await mapBounded(all, async ({ name, policy }): Promise<RolledOut<P>> => {
    try {
      const rollouts = await rollOutTarget(run, { ...batch, title: `${batch.title}: ${name}`, policy });
      return { policies: [{ name, policy, rollouts }], failed: [] };
    } catch (error) {
      const reason = toFailureReason(error);
      if (name === policyNames.base) throw error;
      return { policies: [], failed: [{ name, reason }] };
    }
  });
  return { policies: ended.flatMap(({ policies }) => policies), failed: ended.flatMap(({ failed }) => failed) };
}

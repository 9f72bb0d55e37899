/**
 * The last two stages: the router, fitted on rollouts of all options on train tasks, and the evaluation of every policy on the test tasks. A policy whose
 * batch fails is left out with its reason, but not the base, with which everything is compared.
 */
import type { ArtifactRef } from '../domain/artifacts';
import { policyNames, mergedName, mergeOptions, mergesToTry } from '../domain/policies';
import type { PolicyBatches, RouterResult } from '../domain/results';
import type { Policy, RolloutSummary } from '../domain/rollout';
import { toFailureReason } from './failures';
import {
  adapters,
  evaluatedOptions,
  mergedOption,
  type Option,
  required,
  rollOutTarget,
  routerOptions,
  type Run,
  type TargetBatch,
} from './run';
import { mapBounded, ownStore, policyChecks } from './steps';

type RolledOut<O> = O & { rollouts: RolloutSummary };

interface Batches<O> {
  policies: RolledOut<O>[];
  failed: PolicyBatches['failed'];
}

export async function routerStage(run: Run): Promise<void> {
  const single = await rollOutAll(run, routerOptions(run), outcomeMatrix(run));
  const notMerged = await whyNotMerged(run, single.policies);
  const merges =
    notMerged === undefined ? await tryMerges(run, single.policies) : { merged: [], policies: [], failed: [] };
  const names = merges.merged.map(mergedName);
  // The router takes the first of equally good options: merged adapters come last, larger ones later.
  const choices = [...single.policies, ...merges.policies.filter(({ name }) => names.includes(name))];
  run.results.router = {
    ...(await fit(run, choices)),
    options: choices.map(({ name }) => name),
    merged: merges.merged,
    ...(notMerged !== undefined && { notMerged }),
    policies: [...single.policies, ...merges.policies].map(withoutPolicy),
    failed: [...single.failed, ...merges.failed],
  };
}

const outcomeMatrix = ({ config }: Run) =>
  ({ purpose: 'outcome_matrix', title: 'outcome matrix', tasks: 'router', attempts: config.router.trials }) as const;

/** If no adapter gained anything, a merged one differs from the base only by drift. Returns undefined if one gained, or if there are fewer than two. */
async function whyNotMerged({ config, results }: Run, single: readonly RolledOut<Option>[]) {
  const batches = new Map(single.map(({ name, rollouts }) => [name, rollouts.ref]));
  const base = required(batches.get(policyNames.base));
  const refs = ({ before, after }: Record<'before' | 'after', { ref: ArtifactRef }>) => ({
    before: before.ref,
    after: after.ref,
  });
  const trained = (results.capabilities ?? []).flatMap(({ name, validation }) => {
    const after = batches.get(name);
    if (!validation || !after) return [];
    return [{ name, own: refs(validation.synthesized), target: [refs(validation.target), { before: base, after }] }];
  });
  if (trained.length < 2) return undefined;
  const { gaining } = await policyChecks(config, 'which adapters gain').findGains({
    store: ownStore(),
    adapters: trained,
    confidence: config.evaluation.confidence,
    seed: config.seed,
  });
  if (gaining.length > 0) return undefined;
  return (
    `when the router was fitted, none of the ${trained.length} adapters had gained beyond chance, on held-out seeds of its own environment or on ` +
    "the target's train tasks; if these are too few to show it, raise validation.seeds"
  );
}

/** `merged` holds the parts of each merged adapter that the router may choose. */
async function tryMerges(run: Run, single: readonly RolledOut<Option>[]) {
  const names = adapters(run).flatMap(({ name }) => (single.some((one) => one.name === name) ? [name] : []));
  const all = mergesToTry(names).map((parts) => mergedOption(run, parts));
  const { policies, failed } = await rollOutAll(run, all, outcomeMatrix(run));
  const rates = new Map([...single, ...policies].map(({ name, rollouts }) => [name, rollouts.successRate]));
  return { merged: mergeOptions(names, rates), policies, failed };
}

async function fit(
  { config, results }: Run,
  choices: readonly RolledOut<Option>[],
): Promise<Pick<RouterResult, 'router' | 'reason'>> {
  const selected = results.selection?.selected ?? [];
  try {
    return await policyChecks(config, 'fit the router').fitRouter({
      store: ownStore(),
      router: config.router,
      definitions: Object.fromEntries(selected.map(({ candidate }) => [candidate.name, candidate.definition])),
      seed: config.seed,
      outcomes: choices.map(({ name, policy, rollouts }) => ({ option: name, policy, rollouts: rollouts.ref })),
    });
  } catch (error) {
    return { reason: `the router was not fitted: ${toFailureReason(error)}` };
  }
}

export async function evaluationStage(run: Run): Promise<void> {
  const { router, reason = '' } = required(run.results.router);
  const routed = router ? [{ name: policyNames.routed, policy: { router } }] : [];
  const batch = { purpose: 'test', title: 'test', tasks: 'test', attempts: run.config.evaluation.trials } as const;
  const { policies, failed } = await rollOutAll(run, [...evaluatedOptions(run), ...routed], batch);
  run.results.evaluation = {
    policies: policies.map(withoutPolicy),
    failed: [...failed, ...(router ? [] : [{ name: policyNames.routed, reason }])],
  };
}

const withoutPolicy = ({ name, rollouts }: RolledOut<{ name: string }>) => ({ name, rollouts });

async function rollOutAll<O extends { name: string; policy: Policy }>(
  run: Run,
  options: readonly O[],
  batch: Omit<TargetBatch, 'policy'>,
): Promise<Batches<O>> {
  const ended = await mapBounded(options, async (option) => {
    const { name, policy } = option;
    try {
      const rollouts = await rollOutTarget(run, { ...batch, title: `${batch.title}: ${name}`, policy });
      return { ...option, rollouts };
    } catch (error) {
      const reason = toFailureReason(error);
      if (name === policyNames.base) throw error;
      return { name, reason };
    }
  });
  return {
    policies: ended.flatMap((one) => ('rollouts' in one ? [one] : [])),
    failed: ended.flatMap((one) => ('rollouts' in one ? [] : [one])),
  };
}

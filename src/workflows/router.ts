/**
 * The last two stages: fit the router on the outcome matrix of the train split, over single policies and sums of adapters; evaluate every
 * policy, the routed one too, on test. Invariant: what could not be done of it stands in the record with its reason, and the rest is done;
 * without base there is no evaluation.
 */
import type { ArtifactRef } from '../domain/artifacts';
import { policyNames, sumName, sumOptions, sumsToTry } from '../domain/policies';
import type { EvaluationResult, RouterResult } from '../domain/results';
import type { Policy, RolloutSummary } from '../domain/rollout';
import { resultingReason } from './failures';
import { adapters, type Option, options, required, rollOutTarget, routerOptions, type Run, sumOption } from './run';
import { control, mapBounded, ownStore, policyChecks } from './steps';

type Outcome = Option & { rollouts: RolloutSummary };
type Failed = { name: string; reason: string };
type Ended = Outcome | Failed;

export async function routerStage(run: Run): Promise<void> {
  const single = await outcomesOf(run, routerOptions(run));
  const noSums = await whyNoSums(run, single);
  const { sums, tried } = noSums === undefined ? await trySums(run, single) : { sums: [], tried: [] };
  const ended = [...single, ...tried];
  const outcomes = ended.flatMap((one) => ('rollouts' in one ? [one] : []));
  const failed = ended.flatMap((one) => ('reason' in one ? [one] : []));
  const names = sums.map(sumName);
  // In this order: of options that do as well the router takes the first, and sums, the larger the later, are last.
  const choices = outcomes.filter(({ name }) => names.includes(name) || !tried.some((one) => one.name === name));
  run.found.router = {
    ...(await fit(run, choices)),
    options: choices.map(({ name }) => name),
    sums,
    ...(noSums !== undefined && { noSums }),
    outcomes: outcomes.map(({ name, rollouts: batch }) => ({ option: name, rollouts: batch })),
    ...(failed.length > 0 && { failed }),
  };
}

/**
 * A sum is a combination of what its parts have learned. Where none of them has learned anything it is another policy by drift, and what it
 * solves more on the router's tasks says nothing of the capabilities: then there are none. Nothing is said of one adapter or none.
 */
async function whyNoSums(run: Run, single: readonly Ended[]): Promise<string | undefined> {
  const { config, found } = run;
  const { confidence } = config.evaluation;
  const outcomes = new Map(single.flatMap((one) => ('rollouts' in one ? [[one.name, one.rollouts.ref] as const] : [])));
  const base = required(outcomes.get(policyNames.base));
  const refs = ({ before, after }: Record<'before' | 'after', { ref: ArtifactRef }>) => ({
    before: before.ref,
    after: after.ref,
  });
  const tried = adapters(run).flatMap(({ name }) => {
    const trained = found.capabilities?.find((one) => one.name === name)?.trained;
    const after = outcomes.get(name);
    if (!trained || !after) return [];
    return [{ name, own: refs(trained.synthesized), target: [refs(trained.target), { before: base, after }] }];
  });
  if (tried.length < 2) return undefined;
  const { gaining } = await control(config, 'which adapters gain').findGains({
    adapters: tried,
    confidence,
    seed: config.seed,
  });
  if (gaining.length > 0) return undefined;
  return (
    `when the router was fitted, none of the ${tried.length} adapters had gained beyond chance, on held-out seeds of its own environment or on ` +
    "the target's train tasks; if these are too few to show it, raise validation.seeds"
  );
}

/** Sums of adapters as options of their own. One that can't be rolled out alone can't be in a sum either. */
async function trySums(run: Run, single: readonly Ended[]): Promise<{ sums: string[][]; tried: Ended[] }> {
  const played = new Set(single.flatMap((one) => ('rollouts' in one ? [one.name] : [])));
  const names = adapters(run).flatMap(({ name }) => (played.has(name) ? [name] : []));
  const tried = await outcomesOf(
    run,
    sumsToTry(names).map((parts) => sumOption(run, parts)),
  );
  const rates = new Map(
    [...single, ...tried].flatMap((one) => ('rollouts' in one ? [[one.name, one.rollouts.successRate] as const] : [])),
  );
  return { sums: sumOptions(names, rates), tried };
}

const outcomesOf = (run: Run, all: readonly Option[]): Promise<Ended[]> =>
  mapBounded(all, (option) => outcomeOf(run, option));

/** One option on the router's tasks. One that fails for good can't be chosen; what every router falls back to, base, has to be there. */
async function outcomeOf(run: Run, option: Option): Promise<Ended> {
  const { name, policy } = option;
  try {
    const title = `outcome matrix: ${name}`;
    const attempts = run.config.router.trials;
    const batch = { purpose: 'outcome_matrix', title, policy, tasks: 'router', attempts } as const;
    return { ...option, rollouts: await rollOutTarget(run, batch) };
  } catch (error) {
    return failedOption(name, error);
  }
}

async function fit(
  { config, found }: Run,
  outcomes: readonly Outcome[],
): Promise<Pick<RouterResult, 'router' | 'reason'>> {
  try {
    return await policyChecks(config, 'fit the router').fitRouter({
      store: ownStore(),
      router: config.router,
      definitions: Object.fromEntries(
        (found.selection?.selected ?? []).map(({ candidate }) => [candidate.name, candidate.definition]),
      ),
      seed: config.seed,
      outcomes: outcomes.map(({ name, policy, rollouts: batch }) => ({ option: name, policy, rollouts: batch.ref })),
    });
  } catch (error) {
    return { reason: `the router was not fitted: ${resultingReason(error)}` };
  }
}

export async function evaluationStage(run: Run): Promise<void> {
  const { router, reason = '' } = required(run.found.router);
  const policies: { name: string; policy: Policy }[] = [...options(run)];
  if (router) policies.push({ name: policyNames.routed, policy: { router } });
  const ended = await mapBounded(policies, (one) => evaluate(run, one));
  run.found.evaluation = {
    policies: ended.flatMap((one) => ('rollouts' in one ? [one] : [])),
    failed: [
      ...ended.flatMap((one) => ('reason' in one ? [one] : [])),
      ...(router ? [] : [{ name: policyNames.routed, reason }]),
    ],
  };
}

/** One policy on the test tasks. All others are compared with base: without it there is no evaluation. */
async function evaluate(
  run: Run,
  { name, policy }: { name: string; policy: Policy },
): Promise<EvaluationResult['policies'][number] | Failed> {
  const { trials } = run.config.evaluation;
  try {
    const title = `test: ${name}`;
    const batch = { purpose: 'test', title, policy, tasks: 'test', attempts: trials } as const;
    return { name, rollouts: await rollOutTarget(run, batch) };
  } catch (error) {
    return failedOption(name, error);
  }
}

function failedOption(name: string, error: unknown): Failed {
  const reason = resultingReason(error);
  if (name === policyNames.base) throw error;
  return { name, reason };
}

/**
 * The base model is looked at before the base rollouts are spent. Invariant: its few rollouts are asked for exactly as the base rollouts are,
 * so that they have the same keys and are not made again.
 */
import { Context } from '@temporalio/activity';
import { CHECKED_TASKS, judgeBase, type BaseCheck } from '../domain/base-check';
import type { Environment } from '../domain/environment';
import { openingsOf } from '../environments/open';
import { observing } from '../metrics';
import { checkTokens } from '../policy/base-model';
import { rollOut } from '../rollout/engine';
import { tryAdapter } from '../policy/client';
import { modelFolder, type PolicyDependencies, progress } from './context';
import { inputsOf, resolveTasks } from './tasks';
import type { RollOutInput } from './types';
import type { Training } from '../domain/campaign';

const TITLE = 'base model check';

/** Whether the policy server takes adapters of this rank, times how many are added up. */
export async function checkAdapters(
  deps: PolicyDependencies,
  {
    base,
    lora: { r, targetModules },
    summed,
  }: { base: string; lora: Pick<Training['lora'], 'r' | 'targetModules'>; summed: number },
): Promise<void> {
  const { store, client, python } = deps;
  const { cancellationSignal: signal } = Context.current();
  const model = await modelFolder(deps, base);
  progress({ kind: 'analysis', title: 'try an adapter', done: 0, total: 1 });
  await tryAdapter({ store, client, python, base, model, targetModules, rank: r * summed, signal });
}

/** `rollouts`: the base rollouts, of which the first few are made and looked at. */
export async function checkBase(
  deps: PolicyDependencies,
  { base, rollouts: input }: { base: string; rollouts: RollOutInput },
): Promise<BaseCheck> {
  const { store, environments, client, python } = deps;
  const model = await modelFolder(deps, base);
  const { campaign, budget, purpose } = input;
  const paid = environments.paidBy({ campaign, budget, step: purpose });
  const [environment, all] = await Promise.all([
    paid.get(input.environment),
    resolveTasks({ store, environments: paid }, input),
  ]);
  const tasks = all.slice(0, CHECKED_TASKS);
  const looking = unknownTokens({ python, environment, input, tasks, model });
  looking.catch(() => undefined); // told once the rollouts have ended: none goes on when the activity has
  const { summary, records } = await firstRollouts({ store, client, environment, input, tasks });
  const { tokens, tools } = await looking;
  const scored = (await records()).filter((rollout) => rollout.status === 'scored');
  return { rollouts: summary.ref, ...judgeBase({ tokens, rollouts: scored, tools }) };
}

async function unknownTokens(o: {
  python: string;
  environment: Environment;
  input: RollOutInput;
  tasks: string[];
  model: string;
}) {
  const { python, environment, input, tasks, model } = o;
  const { cancellationSignal: signal } = Context.current();
  const { texts, tools } = await openingsOf({ environment, tasks, seed: input.seed, signal });
  return { tools, tokens: await checkTokens({ python, model, texts, signal }) };
}

function firstRollouts(
  o: Pick<PolicyDependencies, 'store' | 'client'> & { environment: Environment; input: RollOutInput; tasks: string[] },
) {
  const { store, client, environment, input, tasks } = o;
  return rollOut({
    ...input,
    title: TITLE,
    environment,
    tasks,
    attempts: 1,
    inputs: inputsOf(input),
    store,
    client,
    signal: Context.current().cancellationSignal,
    observe: observing(input.purpose, input.policy),
    onProgress: (done) => progress({ kind: 'rollouts', title: TITLE, ...done }),
  });
}

/** Checks the campaign's parts before any work starts, and splits the target's tasks by seed. */
import { digest } from '../store/hash';
import { runChecks, textOf, partChecks } from '../checks/check';
import type { Campaign } from '../domain/campaign';
import type { EnvironmentDescription, Split } from '../domain/environment';
import { badInput, isFailure, OutsideFailure } from '../domain/failures';
import type { Prepared } from '../domain/results';
import { keepFingerprint, poolOf, servedBase } from '../policy/base-model';
import type { Registry } from '../registry';
import { type Dependencies, modelFolder } from './context';
import { working } from './heartbeat';
import { keptJson } from '../store/store';
import { sizesOf, splitTasks } from '../environments/split';
import type { Stage } from '../domain/work';

/** `until`: the stage that the campaign stops after. Inputs of later stages are not checked. */
export async function prepare(
  deps: Dependencies,
  { campaign, until }: { campaign: Campaign; until?: Stage },
): Promise<Prepared> {
  const { store, environments, kinds, baseId } = deps;
  const { id } = campaign.baseModel;
  if (id === undefined) throw badInput('it was started by an older version; cancel it and start it again');
  const base = servedBase(id, campaign);
  if (campaign.policyServer.kind === 'vllm' && baseId === undefined) await fingerprinted(deps, id);
  const pool = campaign.workers.pool ?? poolOf({ store: await store.id(), base });
  const environment = await environments.get(campaign.target);
  const description = await environment.describe();
  const { name, version, notes = [] } = description;
  if (until !== 'rollouts') await checkParts(kinds, campaign, description);
  working('read the tasks').progress(0, 1);
  const idsOf = async (split: Split) => (await environment.tasks(split)).map(({ id }) => id);
  const [train, test] = [await idsOf('train'), await idsOf('test')];
  const plan = splitTasks({ campaign, armKinds: kinds.arms, until, train, test });
  const key = `plan/${digest({ name, version, seed: campaign.seed, plan })}`;
  const ref = await keptJson(store, { key, producer: 'prepare', inputs: [] }, () => plan);
  return {
    base,
    pool,
    target: { name, version, ...(notes.length > 0 && { notes }) },
    plan: ref,
    tasks: sizesOf(plan),
  };
}

/** Stores the log-probs by which a policy server without a model id is checked. */
async function fingerprinted(deps: Dependencies, id: string): Promise<void> {
  const { store, python } = deps;
  try {
    const model = await modelFolder(deps, id);
    const { signal, progress } = working('take the fingerprint of the base model');
    progress(0, 1);
    await keepFingerprint({ store, python, signal, model, id });
  } catch (error) {
    if (!isFailure(error, 'PythonFailed', 'WrongBaseModel')) throw error;
    const memory = error.type === 'PythonFailed' ? 'give this worker the memory of the whole model, ' : '';
    const fix = `${memory}or say what the server serves with CAMPAIGN_BASE_ID='${id}' on all workers`;
    throw new OutsideFailure(error.type, `${error.message}; ${fix}`, error);
  }
}

async function checkParts(kinds: Registry, campaign: Campaign, description: EnvironmentDescription): Promise<void> {
  const items = partChecks({ campaign, describe: async () => description, registry: kinds });
  const checks = await runChecks(items, { isMissing: (error) => isFailure(error, 'BadInput') });
  const problems = checks.filter(({ ok }) => !ok).map((check) => `${check.name}: ${textOf(check)}`);
  if (problems.length > 0) throw badInput(problems.join('; '));
}

/** Checks the campaign's parts before any work starts, and splits the target's tasks by seed. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { digest } from '../artifacts/hash';
import type { Campaign } from '../domain/campaign';
import type { PlanPart, Prepared } from '../domain/results';
import type { ControlActivities } from './types';
import { fail, putJson, type Dependencies } from './context';

export type Plan = Record<PlanPart, string[]>;

export function createPrepare({ store, environments }: Dependencies): Pick<ControlActivities, 'prepare'> {
  return {
    async prepare({ campaign }) {
      const base = await baseModelId(campaign.baseModel.path);
      const environment = await environments.get(campaign.target);
      const { name, version, hasReference } = await environment.describe();
      if (campaign.analyst.kind === 'rules' && !hasReference) {
        throw fail(
          'BadInput',
          `analyst.kind is "rules", but target "${name}" tells no reference actions: use another analyst`,
        );
      }
      const [train, test] = await Promise.all([environment.tasks('train'), environment.tasks('test')]);
      const plan = splitTasks({ campaign, train: train.map((t) => t.id), test: test.map((t) => t.id) });
      const key = `plan/${digest({ name, version, seed: campaign.seed, plan })}`;
      const ref = await putJson(store, { key, producer: 'prepare', inputs: [], value: plan });
      const sizes = Object.fromEntries(Object.entries(plan).map(([part, ids]) => [part, ids.length]));
      return { base, target: { name, version }, plan: ref, tasks: sizes as Prepared['tasks'] };
    },
  };
}

/**
 * Parts of the plan: the held-out tasks and the discovery tasks are disjoint parts of the train split; the router's are drawn from both;
 * the evaluation's from the test split. Counts of the campaign file are upper limits: a small target gives what it has.
 */
export function splitTasks({ campaign, train, test }: { campaign: Campaign; train: string[]; test: string[] }): Plan {
  const { validation, rollouts, router, evaluation, seed } = campaign;
  const shuffled = shuffle(train, `${seed}/train`);
  const heldOut = shuffled.slice(0, Math.min(validation.targetTasks, Math.floor(train.length / 2)));
  const discovery = shuffled.slice(heldOut.length, heldOut.length + rollouts.tasks);
  if (discovery.length === 0 || heldOut.length === 0 || test.length === 0) {
    throw fail(
      'BadInput',
      `the target has ${train.length} train and ${test.length} test tasks: it needs at least 2 and 1`,
    );
  }
  return {
    discovery,
    heldOut,
    router: shuffle([...heldOut, ...discovery], `${seed}/router`).slice(0, router.tasks),
    evaluation: shuffle(test, `${seed}/test`).slice(0, evaluation.tasks),
  };
}

/** A permutation that depends on the ids and the seed alone. */
function shuffle(ids: string[], seed: string): string[] {
  return ids
    .map((id) => [digest([seed, id]), id] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, id]) => id);
}

/** `<folder>@<hash of all files>`: another base is another policy, whatever its folder is called. */
async function baseModelId(path: string): Promise<string> {
  const isModel = await stat(join(path, 'config.json')).then(
    (s) => s.isFile(),
    () => false,
  );
  if (!isModel)
    throw fail(
      'BadInput',
      `baseModel.path: no model in ${path} (config.json is missing); make one with "make base-model"`,
    );
  const hash = createHash('sha256');
  for (const file of (await readdir(path)).sort()) {
    // A folder of a model hub's cache holds links to its files.
    if (!(await stat(join(path, file))).isFile()) continue;
    hash.update(`${file}\n`);
    await pipeline(createReadStream(join(path, file)), hash, { end: false });
  }
  return `${basename(path)}@${hash.digest('hex').slice(0, 12)}`;
}

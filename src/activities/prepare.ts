/** Checks the campaign's parts before any work starts, and splits the target's tasks by seed. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { digest } from '../artifacts/hash';
import type { Campaign } from '../domain/campaign';
import type { EnvironmentDescription } from '../domain/environment';
import { kindOf } from '../domain/kind';
import type { Work } from '../domain/progress';
import type { Prepared } from '../domain/results';
import type { Registry } from '../registry';
import { checkBrought } from './brought';
import { fail, keptJson, working, type Dependencies } from './context';
import { splitTasks } from '../environments/split';
import type { ControlActivities } from './types';

const CHUNK_BYTES = 1 << 22;

export function createPrepare({ store, environments, kinds }: Dependencies): Pick<ControlActivities, 'prepare'> {
  return {
    async prepare({ campaign }) {
      const model = await baseModelId(campaign.baseModel.path, working('hash the base model'));
      const base = servedModel(model, campaign);
      const environment = await environments.get(campaign.target);
      const description = await environment.describe();
      const { name, version, notes = [] } = description;
      await checkParts(kinds, campaign, description);
      const { progress } = working('read the tasks');
      progress(0, 2);
      const train = await environment.tasks('train');
      progress(1, 2);
      const test = await environment.tasks('test');
      progress(2, 2);
      const plan = splitTasks({ campaign, train: train.map((t) => t.id), test: test.map((t) => t.id) });
      const key = `plan/${digest({ name, version, seed: campaign.seed, plan })}`;
      const ref = await keptJson(store, { key, producer: 'prepare', inputs: [] }, () => plan);
      const sizes = Object.fromEntries(Object.entries(plan).map(([part, ids]) => [part, ids.length]));
      return {
        base,
        target: { name, version, ...(notes.length > 0 && { notes }) },
        plan: ref,
        tasks: sizes as Prepared['tasks'],
      };
    },
  };
}

/**
 * Every part that the campaign picks is known to this worker, analyst and synthesizer can be opened, what arms read is
 * there, and the analyst can work on the target. (What a synthesizer can't work on ends as a capability that is not
 * synthesized: the arms still train.)
 */
async function checkParts(kinds: Registry, campaign: Campaign, description: EnvironmentDescription): Promise<void> {
  for (const arm of campaign.arms) {
    const { languageModel, reads } = kindOf(kinds.arms, arm);
    languageModel?.(arm, campaign);
    if (reads) await checkBrought(reads(arm));
  }
  kindOf(kinds.routers, campaign.router);
  await kindOf(kinds.synthesizers, campaign.synthesizer).open(campaign.synthesizer, undefined);
  const analyst = await kindOf(kinds.analysts, campaign.analyst).open(campaign.analyst, undefined);
  const problem = analyst.unsuited?.(description, campaign.selection);
  if (problem !== undefined) throw fail('BadInput', problem);
}

/** What a server cuts off at its context decides rollouts. The embedded one has the model's own. */
const servedModel = (model: string, { policyServer }: Campaign): string =>
  policyServer.kind === 'vllm' ? `${model}, ${policyServer.contextTokens} tokens` : model;

/** `<folder>@<hash of all files>`: another base is another policy, also in a folder of the same name. */
async function baseModelId(path: string, { progress, signal }: Work): Promise<string> {
  const isModel = await stat(join(path, 'config.json')).then(
    (s) => s.isFile(),
    () => false,
  );
  if (!isModel)
    throw fail(
      'BadInput',
      `baseModel.path: no model in ${path} (config.json is missing); make one with "make base-model"`,
    );
  const entries = await Promise.all(
    (await readdir(path)).sort().map(async (name) => ({ name, stats: await stat(join(path, name)) })),
  );
  // A folder of a model hub's cache holds links to its files.
  const files = entries.filter(({ stats }) => stats.isFile());
  const total = files.reduce((sum, { stats }) => sum + stats.size, 0);
  const hash = createHash('sha256');
  let done = 0;
  for (const { name } of files) {
    hash.update(`${name}\n`);
    for await (const chunk of createReadStream(join(path, name), { highWaterMark: CHUNK_BYTES, signal })) {
      hash.update(chunk as Buffer);
      progress((done += (chunk as Buffer).length), total);
    }
  }
  return `${basename(path)}@${hash.digest('hex').slice(0, 12)}`;
}

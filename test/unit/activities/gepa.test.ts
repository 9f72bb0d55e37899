/** The arm `gepa`: which model it asks, what is told before anything runs, its cap, and what its process is not given. */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRolloutActivities } from '../../../src/activities';
import type { SearchPromptInput } from '../../../src/activities/types';
import { openFolderStore } from '../../../src/store/open-store';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { languageModelSchema } from '../../../src/domain/endpoints';
import { registry, shopParts } from '../../support/kinds';
import { gepa } from '../../../src/workflows/arms/gepa';
import { putPlan, run as runActivity } from '../../support/activity-inputs';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';
import { poolOf } from '../../support/environment-pool';
import { eachTemporaryFolder } from '../../support/temporary-folder';

const model = { url: 'http://127.0.0.1:2/v1', model: 'writes-prompts' };
const campaign = (arm: object, parts: object = {}) =>
  campaignFileSchema(registry).parse({
    ...{ name: 'x', ...shopParts, baseModel: { path: '/base' }, ...parts },
    arms: [{ kind: 'gepa', ...arm }],
  });
const asked = (arm: object, parts?: object) => {
  const read = campaign(arm, parts);
  return gepa.languageModel!(read.arms[0]!, read);
};

let home: string;
eachTemporaryFolder((made) => (home = made));

describe('its language model', () => {
  test('is its own, else the analyst that asks one; else it says what to set', () => {
    const analyst = { kind: 'llm', url: model.url, model: 'reads' };
    expect(asked({ reflection: model, name: 'prompts' }, { analyst })).toMatchObject({
      field: 'arms.prompts.reflection',
      model: { model: 'writes-prompts', repairs: 3 },
    });
    expect(asked({}, { analyst })).toMatchObject({ field: 'analyst', model: { model: 'reads' } });
    expect(() => asked({})).toThrow(
      /^arms\.gepa\.reflection is missing, and analyst\.kind is rules, .*: set reflection \{ url, model, apiKeyEnv \}/,
    );
  });
});

describe('the activity', () => {
  const run = async (more: Partial<SearchPromptInput>, python = 'python', policy = 'count') => {
    const store = openFolderStore(join(home, 'artifacts'));
    const plan = await putPlan(store, ['n-1', 'n-2', 'n-3', 'n-4']);
    const environment = countingEnvironment();
    const described = { ...(await environment.describe()), policy };
    const { searchPrompt } = createRolloutActivities({
      ...{ store, home, client: countingPolicy(), kinds: registry, python },
      environments: poolOf(async () => ({ ...environment, describe: async () => described })),
    });
    const { arms } = campaign({ validationTasks: 2, minibatchSize: 1, reflection: model });
    const input: SearchPromptInput = {
      ...{
        store: await store.id(),
        name: 'gepa',
        campaign: 'x',
        budget: {},
        base: 'base@1',
        seed: 1,
        searchSeed: 2,
        rollouts: 20,
      },
      environment: { kind: 'shop' },
      tasks: { kind: 'plan', plan, part: 'train' },
      search: arms[0] as unknown as SearchPromptInput['search'],
      reflection: { field: 'arms.gepa.reflection', model: languageModelSchema.parse(model) },
      sampling: { temperature: 1, topP: 1, maxTokens: 16 },
      ...{ maxSteps: 8, concurrency: 1, maxAttempts: 1, stallSeconds: 30 },
      ...more,
    };
    return runActivity(searchPrompt, input);
  };
  const search = (more: object) =>
    campaign({ reflection: model, ...more }).arms[0] as unknown as SearchPromptInput['search'];

  test('gives the process neither keys nor anything else of its environment', async () => {
    const python = join(home, 'python');
    writeFileSync(python, `#!/bin/sh\nenv > '${home}/env'\ncat "$5" > '${home}/job'\n`);
    chmodSync(python, 0o755);
    process.env['SOME_API_KEY'] = 'secret';
    await expect(run({ search: search({ place: 'instead', minibatchSize: 1 }) }, python)).rejects.toMatchObject({
      type: 'TrainerDied',
    });
    delete process.env['SOME_API_KEY'];
    const names = readFileSync(join(home, 'env'), 'utf8').match(/^\w+(?==)/gm);
    expect(names).toEqual(expect.arrayContaining(['PATH', 'PYTHONHASHSEED']));
    expect(names).not.toContain('SOME_API_KEY');
    expect(readFileSync(join(home, 'job'), 'utf8')).not.toContain(model.url);
    // Prompts are chosen by other tasks than they are written from; `instead` begins with the target's policy.
    expect(JSON.parse(readFileSync(join(home, 'job'), 'utf8'))).toMatchObject({
      ...{ validation: ['n-1', 'n-2'], train: ['n-3', 'n-4'], prompt: 'count', place: 'instead', seed: 2 },
    });
  });
});

/** The arm `gepa`: what its process is given and what not. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createRolloutActivities } from '../../../src/activities';
import type { SearchPromptInput } from '../../../src/activities/types';
import { openFolderStore } from '../../../src/store/open-store';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import { languageModelSchema } from '../../../src/domain/endpoints';
import { registry, shopCampaign } from '../../support/kinds';
import { putPlan, run } from '../../support/activity-inputs';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';
import { poolOf } from '../../support/environment-pool';
import { eachTemporaryFolder } from '../../support/temporary-folder';

const model = { url: 'http://127.0.0.1:2/v1', model: 'writes-prompts' };
let home: string;
eachTemporaryFolder((made) => (home = made));

test('its process is given neither keys nor anything else of the environment', async () => {
  const python = join(home, 'python');
  writeFileSync(python, `#!/bin/sh\nenv > '${home}/env'\ncat "$5" > '${home}/job'\n`, { mode: 0o755 });
  const store = openFolderStore(join(home, 'artifacts'));
  const environment = countingEnvironment();
  const described = { ...(await environment.describe()), policy: 'count' };
  const { searchPrompt } = createRolloutActivities({
    ...{ store, home, client: countingPolicy(), kinds: registry, python },
    environments: poolOf(async () => ({ ...environment, describe: async () => described })),
  });
  const { arms } = campaignFileSchema(registry).parse({
    ...shopCampaign,
    arms: [{ kind: 'gepa', validationTasks: 2, reflection: model, place: 'instead', minibatchSize: 1 }],
  });
  const input: SearchPromptInput = {
    ...{ store: await store.id(), name: 'gepa', campaign: 'x', budget: {}, base: 'base@1' },
    ...{ seed: 1, searchSeed: 2, rollouts: 20 },
    environment: { kind: 'shop' },
    tasks: { kind: 'plan', plan: await putPlan(store, ['n-1', 'n-2', 'n-3', 'n-4']), part: 'train' },
    search: arms[0] as unknown as SearchPromptInput['search'],
    reflection: { field: 'arms.gepa.reflection', model: languageModelSchema.parse(model) },
    sampling: { temperature: 1, topP: 1, maxTokens: 16 },
    ...{ maxSteps: 8, concurrency: 1, maxAttempts: 1, stallSeconds: 30 },
  };
  process.env['SOME_API_KEY'] = 'secret';
  await expect(run(searchPrompt, input)).rejects.toMatchObject({ type: 'TrainerDied' });
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

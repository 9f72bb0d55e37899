/** Several synthesized environments as one: it keeps an environment's contract, and each task is its own environment's. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { EnvironmentPool } from '../../../src/activities/environments';
import { resolveTasks } from '../../../src/activities/tasks';
import { openFolderStore } from '../../../src/store/open-store';
import { campaignFileSchema } from '../../../src/cli/campaign-schema';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { mixtureSpec, sandboxSpec, type EnvironmentSpec } from '../../../src/domain/kinds';
import { checkEnvironment } from '../../../src/environments/conformance';
import { openEnvironment } from '../../../src/environments/kinds';
import { registry, shopParts } from '../../support/kinds';
import { mixedTaskOf, TRAINING_SEEDS } from '../../../src/domain/seeds';
import { putModule } from '../../support/activity-inputs';
import { closedAfterwards } from '../../support/opened';
import { temporaryFolder } from '../../support/temporary-folder';

const home = temporaryFolder();
const store = openFolderStore(home);

/** Says what it is, and has a tool of its own. */
const counter = (name: string, maxSteps: number): string => `
  const tool = { name: 'add_to_${name}', description: 'adds', parameters: { type: 'object', properties: {} } };
  const shared = { ...tool, name: 'look', description: 'looks at ${name}' };
  export const describe = () => ({ policy: 'count ${name} .', tools: [tool, shared], maxSteps: ${maxSteps} });
  export const make = (seed) => ({ seed });
  export const start = ({ seed }) => [{ role: 'system', content: 'count ${name} .' }, { role: 'user', content: '${name} to ' + seed }];
  export const step = (state) => ({ state, messages: [], done: true });
  export const reward = () => ({ reward: 0.5, breakdown: {}, branch: '${name}' });
  export const reference = () => ({ actions: [], tell: [] });
  export const solve = () => [{ role: 'assistant', content: 'end' }];`;
let [apples, pears]: ArtifactRef[] = [];
beforeAll(async () => {
  apples = await putModule(store, counter('apples', 3));
  pears = await putModule(store, counter('pears', 5));
});
const kinds = registry.environments;
const opened = async (spec: EnvironmentSpec) => closedAfterwards(await openEnvironment(spec, { store, kinds }));

test('keeps the contract of an environment as far as its modules do', async () => {
  const text = readFileSync(resolve(__dirname, '../../..', 'prompts', 'examples', 'pages.js'), 'utf8');
  const [module, other] = [await putModule(store, text), await putModule(store, `${text}\n// once more\n`)];
  const findingsOf = async (spec: EnvironmentSpec) =>
    checkEnvironment(await opened(spec), { again: () => openEnvironment(spec, { store, kinds }) });
  const both = await findingsOf(mixtureSpec([module, other]));
  const own = both.map(({ problem, ...finding }) => ({ ...finding, problem: problem.replace('task 0/', 'task ') }));
  expect(own).toEqual(await findingsOf(sandboxSpec(module)));
});

test('a task is played in its own environment, with that one’s policy, tools, limit and reward', async () => {
  const environment = await opened(mixtureSpec([apples!, pears!]));
  const { tools, policy, maxSteps } = await environment.describe();
  expect(tools.map(({ name, description }) => [name, description])).toEqual([
    ['add_to_apples', 'adds'],
    ['look', 'looks at apples'],
    ['add_to_pears', 'adds'],
  ]);
  expect([policy, maxSteps]).toEqual(['count apples .\n\ncount pears .', 5]);
  const [first, second] = await Promise.all(['0/seed-7', '1/seed-7'].map((id) => environment.reset({ id, seed: 1 })));
  expect(first!.start).toMatchObject({ messages: [{}, { content: 'apples to 7' }], maxSteps: 3 });
  expect(second!.start.tools.map(({ description }) => description)).toEqual(['adds', 'looks at pears']);
  await second!.step({ role: 'assistant', content: 'x' });
  expect(await second!.evaluate('agent_stop')).toMatchObject({ reward: 0.5, branch: 'pears' });
});

test('a module that does not load is an error, and no campaign file can name a mixture', async () => {
  const broken = await putModule(store, 'export const describe = () => {');
  const spec = mixtureSpec([apples!, broken]);
  await expect(openEnvironment(spec, { store, kinds })).rejects.toMatchObject({ type: 'BadEnvironment' });
  const file = { name: 'x', ...shopParts, target: spec, baseModel: { path: 'models/base' } };
  expect(campaignFileSchema(registry).safeParse(file).error?.issues[0]?.path).toEqual(['target', 'kind']);
});

describe('tasks', () => {
  test('come in pairs of seeds, in turn: each step of enough groups holds a pair of every environment', async () => {
    const environments = new EnvironmentPool(store, registry.environments);
    const tasks = await resolveTasks(
      { store, environments },
      {
        environment: mixtureSpec([apples!, pears!, apples!]),
        tasks: { kind: 'seeds', from: TRAINING_SEEDS, count: 24 },
      },
    );
    const begins = tasks.slice(0, 8).map((task) => task.replace('/seed-1000', ':'));
    expect(begins.join(' ')).toBe('0:0 0:1 1:0 1:1 2:0 2:1 0:2 0:3');
    expect(new Set(tasks).size).toBe(24);
    const environmentsOf = (step: string[]) => new Set(step.map((task) => mixedTaskOf(task, 3).environment)).size;
    for (let n = 0; n < 24; n += 6) expect(environmentsOf(tasks.slice(n, n + 6))).toBe(3);
    // Fewer groups than that: as many environments as there are pairs, and in the end as many tasks of each.
    for (let n = 0; n < 24; n += 4) expect(environmentsOf(tasks.slice(n, n + 4))).toBe(2);
    expect([0, 1, 2].map((n) => tasks.filter((task) => task.startsWith(`${n}/`)).length)).toEqual([8, 8, 8]);
  });
});

/** What the leakage check reads: the instances that were really played, and none of what never was. */
import { EnvironmentPool } from '../../../src/activities/environments';
import { checkLeakage } from '../../../src/activities/leakage';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import type { SynthesisRound } from '../../../src/domain/calibration';
import { campaignSchema } from '../../../src/domain/campaign';
import type { ArmResult, CampaignRecord, CapabilityResult } from '../../../src/domain/results';
import type { RolloutSummary } from '../../../src/domain/rollout';
import { registry, shopParts } from '../../support/kinds';
import { TRAINING_SEEDS } from '../../../src/domain/seeds';
import { put, putModule, putRollouts, shopTestTask } from '../../support/activity-inputs';
import { scoredRollout } from '../../support/scored-rollout';
import { temporaryFolder } from '../../support/temporary-folder';

const store = openFolderStore(temporaryFolder());
const environments = new EnvironmentPool(store, registry.environments);
afterAll(() => environments.close());

const campaign = campaignSchema.parse({
  name: 'checked',
  ...shopParts,
  baseModel: { path: 'models/base' },
  calibration: { seeds: 3 },
  training: { steps: 2, groupsPerStep: 2 },
  validation: { seeds: 5 },
});

/** A module whose user says `text` after `make`. */
const moduleOf = ({ make = '', text = `'seed ' + seed` }: { make?: string; text?: string }) =>
  putModule(
    store,
    `export const describe = () => ({ policy: 'p', tools: [{ name: 'a', description: '', parameters: {} }], maxSteps: 3 });
     export const make = (seed) => { ${make} return { seed }; };
     export const start = ({ seed }) => [{ role: 'user', content: ${text} }];`,
  );

const summary = {} as RolloutSummary;
const tested = (passed: boolean) => (module: ArtifactRef) => ({ round: 1, module, selfTest: { passed, findings: [] } });
const [failed, passed] = [tested(false), tested(true)];
const calibrated = (module: ArtifactRef): SynthesisRound => ({ ...passed(module), calibrationRollouts: summary });

async function check(
  o: Partial<CapabilityResult> & { task?: string; pool?: Pick<EnvironmentPool, 'get'>; arms?: Partial<ArmResult>[] },
) {
  const { task = 'none', pool = environments, arms = [], ...result } = o;
  const example = scoredRollout({ name: 'example', task, reward: 1 });
  const baseRollouts = await putRollouts(store, `base ${task}`, [example]);
  const examples = task === 'none' ? [] : [example.key];
  const record = {
    campaign,
    baseRollouts: { ref: baseRollouts },
    selection: {
      candidates: await put(store, 'candidates', '[]'),
      selected: [{ candidate: { name: 'some', definition: 'a text of its own', examples }, votes: 1 }],
    },
    capabilities: [{ name: 'some', workflowId: 'w', status: 'failed', rounds: [], ...result }],
    arms,
  } as unknown as CampaignRecord;
  return (await checkLeakage({ store, environments: pool as EnvironmentPool, record }))!;
}
const work = { training: { steps: 2 } } as NonNullable<CapabilityResult['work']>;

test('a module that failed its self-test is not opened: the one before it was played', async () => {
  const broken = await putModule(store, 'export const = 1;');
  const alone = await check({ rounds: [failed(broken)] });
  expect(alone).toMatchObject({ passed: true, textsChecked: 1 });
  expect(alone.from).not.toContainEqual(broken);
  const played = await moduleOf({});
  const after = await check({ rounds: [calibrated(played), failed(broken)] });
  expect(after).toMatchObject({ passed: true, textsChecked: 1 + 1 + 3 });
  expect(after.from).toContainEqual(played);
});

test('seeds count as far as the capability came', async () => {
  const module = await moduleOf({});
  const texts = async (of: Partial<CapabilityResult>) => (await check(of)).textsChecked;
  expect(await texts({ rounds: [passed(module)] })).toBe(1);
  expect(await texts({ rounds: [calibrated(module)] })).toBe(1 + 1 + 3);
  expect(await texts({ rounds: [calibrated(module)], work })).toBe(1 + 1 + 3 + 2 * 2 + 5);
  // An example is compared by what its rollout began with.
  expect(await check({ task: 'some task' })).toMatchObject({ passed: true, textsChecked: 2 });
});

test('a seed on which the module throws is passed over, and one that says a test task is not used, nor its twin', async () => {
  const { id, text } = await shopTestTask();
  const module = await moduleOf({
    make: `if (seed === ${TRAINING_SEEDS + 2}) throw new Error('no instance');`,
    text: `seed === ${TRAINING_SEEDS + 1} ? ${JSON.stringify(text)} : 'seed ' + seed`,
  });
  expect(await check({ rounds: [calibrated(module)], work })).toMatchObject({
    passed: false,
    textsChecked: 1 + 1 + 3 + (2 * 2 - 1) + 5,
    seedsLeftOut: 2,
    hits: [{ where: 'some, its code', task: id }],
  });
});

test('what an arm trained on is compared, too, and what a capability was trained on before is not read twice', async () => {
  const { id, text } = await shopTestTask();
  const own = await moduleOf({});
  const capability = { rounds: [calibrated(own)], work };
  const alone = (await check(capability)).textsChecked;
  // Four seeds are the capability's; two more are this arm's.
  const single = { name: 'single', trainedOn: [{ module: own, seeds: 6 }] };
  expect((await check({ ...capability, arms: [single] })).textsChecked).toBe(alone + 2);
  const says = `seed === ${TRAINING_SEEDS + 1} ? ${JSON.stringify(text)} : 'another ' + seed`;
  const brought = await moduleOf({ text: says });
  const folder = { name: 'environments', trainedOn: [{ module: brought, seeds: 3 }] };
  const found = await check({ ...capability, arms: [single, folder] });
  // And its code.
  expect(found.textsChecked).toBe(alone + 2 + 1 + 3);
  expect(found.seedsLeftOut).toBe(2);
  expect(found.hits).toEqual([{ where: 'environments, its code', task: id }]);
});

/** The leakage check reads what was really played, and nothing else. */
import { EnvironmentPool } from '../../../src/activities/environments';
import { checkLeakage } from '../../../src/activities/leakage';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import type { SynthesisRound } from '../../../src/domain/calibration';
import { campaignSchema } from '../../../src/domain/campaign';
import type { ArmResult, CampaignRecord, CapabilityResult } from '../../../src/domain/results';
import type { RolloutSummary } from '../../../src/domain/rollout';
import { registry, shopCampaign } from '../../support/kinds';
import { put, putModule, shopTestTask } from '../../support/activity-inputs';
import { putRollouts, scoredRollout } from '../../support/scored-rollout';
import { temporaryFolder } from '../../support/temporary-folder';

const store = openFolderStore(temporaryFolder());
const environments = new EnvironmentPool(store, registry.environments);
afterAll(() => environments.close());

const campaign = campaignSchema.parse({
  ...shopCampaign,
  calibration: { seeds: 3 },
  training: { steps: 2, groupsPerStep: 2 },
  validation: { seeds: 5 },
});

/** A module whose user says this text. */
const moduleOf = (text = 'a seed') =>
  putModule(store, `export const start = () => [{ role: 'user', content: ${JSON.stringify(text)} }];`);

const summary = {} as RolloutSummary;
const tested = (passed: boolean) => (module: ArtifactRef) => ({ round: 1, module, selfTest: { passed, findings: [] } });
const [failed, passed] = [tested(false), tested(true)];
const calibrated = (module: ArtifactRef): SynthesisRound => ({ ...passed(module), calibrationRollouts: summary });

async function check(o: Partial<CapabilityResult> & { task?: string; arms?: Partial<ArmResult>[] }) {
  const { task = 'none', arms = [], ...result } = o;
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
  return (await checkLeakage({ store, environments, record }))!;
}

test('the code of modules that were played is compared, and of no other', async () => {
  const broken = await putModule(store, 'export const = 1;');
  const alone = await check({ rounds: [failed(broken)] });
  expect(alone).toMatchObject({ passed: true, textsChecked: 1 });
  expect(alone.from).not.toContainEqual(broken);
  const played = await moduleOf();
  expect(await check({ rounds: [passed(played)] })).toMatchObject({ textsChecked: 1 });
  const after = await check({ rounds: [calibrated(played), failed(broken)] });
  expect(after).toMatchObject({ passed: true, textsChecked: 2 });
  expect(after.from).toContainEqual(played);
});

test('a module and a baseline that contain a test task fail the check; an example is compared by its beginning', async () => {
  const { id, text } = await shopTestTask();
  const [own, brought] = [await moduleOf(text), await moduleOf(`Hello! ${text}`)];
  const arms = [
    { name: 'single', trainedOn: [own] },
    { name: 'environments', trainedOn: [brought] },
  ];
  expect(await check({ rounds: [calibrated(own)], arms })).toMatchObject({
    ...{ passed: false, textsChecked: 1 + 2 },
    hits: [
      { where: 'some, its code', task: id },
      { where: 'environments, its code', task: id },
    ],
  });
  expect(await check({ task: 'some task' })).toMatchObject({ passed: true, textsChecked: 2 });
});

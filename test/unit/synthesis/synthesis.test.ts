import { sha256 } from '../../../src/store/hash';
import { capabilities } from '../../../examples/shop/rules/errors';
import { calibrate, calibrationBandsSchema } from '../../../src/domain/calibration';
import type { EnvironmentDescription } from '../../../src/domain/environment';
import type { Group, ScoredRollout } from '../../../src/domain/rollout';
import { shopTasks } from '../../../examples/shop/target/shop';
import { messageHash, normalised } from '../../../src/sandbox/leakage';
import { openModule, type EnvironmentModule } from '../../../src/sandbox/module';
import { selfTest } from '../../../src/sandbox/self-test';
import { closedAfterwards } from '../../support/opened';
import { sample } from '../../support/sample';
import { capabilityNames, generate, regenerate, shopTarget } from '../../fixtures/synthesis/generate';

jest.setTimeout(120_000);

const bands = calibrationBandsSchema.parse({});

/** Rewards of 16 attempts at a seed. */
const rewards = (success: number) => Array.from({ length: 16 }, (_, i) => (i < success ? 1 : 0.1));
const judged = (groups: Group[]) => calibrate({ groups, bands, confidence: 0.95 });
const report = (success: number) => judged(Array.from({ length: 10 }, () => ({ rewards: rewards(success) })));

let shop: EnvironmentDescription;
let rollouts: ScoredRollout[];
const open = (source: string): EnvironmentModule => closedAfterwards(openModule({ source }));
beforeAll(async () => {
  ({ description: shop, rollouts } = await shopTarget());
});

/** A module's bytes are the key of all that was calibrated and trained on it: a change of its text needs a new version of the kind. */
test('a module has the bytes that stored campaigns know it by', async () => {
  const { source } = await generate('refuse_forbidden_actions', shop);
  expect(sha256(source)).toBe('c222ad7adbbe840fd6ad3498bf72c38c213fea4cb84132bd4a98659371e9447a');
});

describe('generators on the shop', () => {
  it.each(sample(capabilityNames, 2))('%s: passes the self-test', async (capability) => {
    const { source } = await generate(capability, shop, { rollouts });
    const { tools } = await open(source).describe();
    expect(await selfTest({ source })).toEqual({ passed: true, findings: [] });
    expect(tools.length).toBeGreaterThanOrEqual(3);
    expect(tools.length).toBeLessThanOrEqual(5);
    // Exactly the target's schemas.
    for (const tool of tools) expect(shop.tools).toContainEqual(tool);
  });

  it('never shows a user a message of the test split, not even as a part', async () => {
    const tests = [...shopTasks().values()].flatMap((one) => (one.id.startsWith('test-') ? [one.firstMessage] : []));
    const hits = async (source: string): Promise<number> => {
      const module = open(source);
      let found = 0;
      for (let seed = 0; seed < 600; seed += 1) {
        const [, user] = await module.start(await module.make(seed));
        const text = ` ${normalised(user?.content ?? '')} `;
        if (tests.some((test) => text.includes(` ${normalised(test)} `))) found += 1;
      }
      return found;
    };
    expect(await hits((await generate('ask_for_missing_identifiers', shop)).source)).toBeGreaterThan(0);
    expect(
      await hits((await generate('ask_for_missing_identifiers', shop, { forbidden: tests.map(messageHash) })).source),
    ).toBe(0);
  });
});

test('there is a generator for whatever the analyst by rules can find', () => {
  const names = Object.values(capabilities).map(({ name }) => name);
  expect([...capabilityNames].sort()).toEqual(names.sort());
});

describe('after calibration', () => {
  const calibrated = (source: string, success: number) => ({ source, findings: [], calibration: report(success) });

  const revised: [name: string, success: number, last: number][] = [
    ['refuse_forbidden_actions', 0, 2],
    ['complete_all_requested_actions', 16, 3],
    ['select_matching_record', 16, 3],
    ['select_matching_record', 0, 2],
  ];
  it.each(sample(revised, 1))(
    '%s, success %d of 16: the last module passes the self-test, and there is none after it',
    async (name, success, last) => {
      let { source } = await generate(name, shop);
      for (let round = 2; round <= last; round += 1)
        ({ source } = await regenerate(name, shop, { round, previous: calibrated(source, success) }));
      expect((await selfTest({ source })).findings).toEqual([]);
      await expect(regenerate(name, shop, { previous: calibrated(source, success) })).rejects.toMatchObject({
        type: 'CannotSynthesize',
      });
    },
  );
});

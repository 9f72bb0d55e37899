import { sha256 } from '../../../src/store/hash';
import type { EnvironmentDescription } from '../../../src/domain/environment';
import type { ScoredRollout } from '../../../src/domain/rollout';
import { shopTasks } from '../../../examples/shop/target/shop';
import { messageHash, normalised } from '../../../src/sandbox/leakage';
import { openModule, type EnvironmentModule } from '../../../src/sandbox/module';
import { selfTest } from '../../../src/sandbox/self-test';
import { closedAfterwards } from '../../support/opened';
import { sample } from '../../support/sample';
import { capabilityNames, generate, shopTarget } from '../../fixtures/synthesis/generate';

let shop: EnvironmentDescription;
let rollouts: ScoredRollout[];
const open = (source: string): EnvironmentModule => closedAfterwards(openModule({ source }));
beforeAll(async () => {
  ({ description: shop, rollouts } = await shopTarget());
});

/** A module's bytes are the key of all that was calibrated and trained on it: a change of its text needs a new version of the kind. */
test('a module has the bytes that stored campaigns know it by', async () => {
  const { source } = await generate('refuse_forbidden_actions', shop);
  expect(sha256(source)).toBe('1f2347decc0ab654d9476bd289a35bf9131250a73f0630a8d32db857136e9265');
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

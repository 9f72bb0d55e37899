/** The shipped example of a module does what it claims. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { checkModule } from '../../src/cli/environment-check';
import { createShop } from '../../examples/shop/target/shop';
import { openModule, play } from '../../src/sandbox/module';

const examples = resolve(__dirname, '..', '..', 'examples');
const MODULE = 'modules/refuse_forbidden_actions.js';

describe('refuse_forbidden_actions', () => {
  const file = resolve(examples, MODULE);
  const source = readFileSync(file, 'utf8');

  test('passes `campaign env check`', async () => {
    const { episode, ...found } = await checkModule({ file, say: () => undefined });
    expect(found).toEqual({ passed: true, static: [], selfTest: [] });
    expect(episode).toMatchObject({ reward: 1, branch: 'special' });
  }, 60_000);

  test("has twins, levels of reward and shortcuts, and the target's own tools", async () => {
    const module = openModule({ source });
    const { tools } = await createShop().describe();
    const offered = (await module.describe()).tools;
    expect(offered).toEqual(offered.map(({ name }) => tools.find((one) => one.name === name)));
    const [special, twin] = await Promise.all([0, 1].map(async (seed) => module.start(await module.make(seed))));
    expect(special).toEqual(twin);
    const { always = [], never = [] } = await module.shortcuts(0);
    const rewards = [always, never, always.slice(0, 1), always.slice(1)].map(async (script) =>
      [0, 1].map(async (seed) => (await play(module, { seed, script })).reward),
    );
    const played = await Promise.all(rewards.map(async (each) => Promise.all(await each)));
    expect(played).toEqual([
      [1, 0.1],
      [0.1, 1],
      [0.1, 0.1],
      [0, 0],
    ]);
    await module.close();
  });
});

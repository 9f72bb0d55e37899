import { createHash } from 'node:crypto';
import { createShop, type ShopParameters, shopTasks } from '../../../examples/shop/target/shop';
import { SKILLS, splitOf } from '../../../examples/shop/target/tasks';
import { demonstrate } from '../../../examples/shop/target/reference-agent';
import { random } from '../../../examples/shop/target/in-process';

const tasks = [...shopTasks().values()];

test('without parameters every task is what it always was', async () => {
  const sha256 = createHash('sha256').update(JSON.stringify(tasks)).digest('hex');
  expect(sha256).toBe('cca5dc8cbde623c2748ee23aa9e1fe38704c3144d61601dafd86efc8e01a7f73');
  const version = async (parameters: Partial<ShopParameters>) => (await createShop(parameters).describe()).version;
  expect(await version({ requests: 2, several: 0.5, trainTasks: 400, testTasks: 200 })).toBe('1');
  expect(await version({ requests: 1, several: 0.25 })).toBe('1 (requests 1, several 0.25)');
});

describe('the scripted policy', () => {
  const few = { trainTasks: 200, testTasks: 100 };
  const settings = [{}, { requests: 1, several: 1, ...few }, { requests: 3, several: 0.7, ...few }];

  test.each(settings)('with %j it solves every task, through the door of the environment as well', async (setting) => {
    const shop = createShop(setting);
    for (const task of shopTasks(setting).values()) {
      const { messages, evaluation } = await demonstrate({ task, lacks: new Set(), rng: random(task.id) });
      expect([task.id, evaluation.reward]).toEqual([task.id, 1]);
      const episode = await shop.reset({ id: task.id, seed: 1 });
      for (const message of messages) if (message.role === 'assistant') await episode.step(message);
      expect((await episode.evaluate('user_stop')).reward).toBe(1);
      expect(splitOf(task.firstMessage)).toBe(task.id.split('-')[0]);
      // Words that items share are those of a twin only.
      const words = task.database.items.flatMap(({ item }) => item.split(' '));
      expect(words.length - new Set(words).size).toBe(task.skills.includes('choose') ? 1 : 0);
    }
  });

  test.each(SKILLS)('lacking %s it fails exactly the tasks that carry it, the same way twice', async (skill) => {
    for (const setting of settings)
      for (const task of shopTasks(setting).values()) {
        const played = () => demonstrate({ task, lacks: new Set([skill]), rng: random(task.id) });
        const one = await played();
        expect([task.id, one.evaluation.reward]).toEqual([task.id, task.skills.includes(skill) ? 0 : 1]);
        expect(await played()).toEqual(one);
      }
  });
});

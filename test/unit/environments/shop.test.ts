import { createHash } from 'node:crypto';
import { createShop, shopTasks } from '../../../examples/shop/target/shop';
import { SKILLS, splitOf } from '../../../examples/shop/target/tasks';
import { demonstrate } from '../../../examples/shop/target/reference-agent';
import { random } from '../../../examples/shop/target/random';

const tasks = [...shopTasks().values()];

test('every task is what it always was', async () => {
  const sha256 = createHash('sha256').update(JSON.stringify(tasks)).digest('hex');
  expect(sha256).toBe('cca5dc8cbde623c2748ee23aa9e1fe38704c3144d61601dafd86efc8e01a7f73');
  expect((await createShop().describe()).version).toBe('1');
});

describe('the scripted policy', () => {
  test('solves every task, through the door of the environment as well', async () => {
    const shop = createShop();
    for (const task of tasks) {
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
    for (const task of tasks) {
      const played = () => demonstrate({ task, lacks: new Set([skill]), rng: random(task.id) });
      const one = await played();
      expect([task.id, one.evaluation.reward]).toEqual([task.id, task.skills.includes(skill) ? 0 : 1]);
      expect(await played()).toEqual(one);
    }
  });
});

import { createHash } from 'node:crypto';
import { openEnvironment } from '../../../src/environments/open';
import { createShop, type ShopParameters, shopTasks } from '../../../examples/shop/target/shop';
import { type ShopTask, SKILLS, splitOf, taskStream } from '../../../examples/shop/target/tasks';
import { demonstrate } from '../../../examples/shop/target/reference-agent';
import { random } from '../../../examples/shop/target/in-process';
import { registry } from '../../support/kinds';

const tasks = [...shopTasks().values()];

describe('tasks', () => {
  const versionWith = async (parameters: Partial<ShopParameters>) => (await createShop(parameters).describe()).version;

  test('without parameters every task is what it always was', async () => {
    const sha256 = createHash('sha256').update(JSON.stringify(tasks)).digest('hex');
    expect(sha256).toBe('cca5dc8cbde623c2748ee23aa9e1fe38704c3144d61601dafd86efc8e01a7f73');
    expect(await versionWith({ requests: 2, several: 0.5, trainTasks: 400, testTasks: 200 })).toBe('1');
  });

  test('the demonstrations have no first message of a test task', () => {
    const held = new Set(tasks.filter((t) => t.id.startsWith('test')).map((t) => t.firstMessage));
    const stream = taskStream({ stream: 'demonstration-1', split: 'train' });
    for (let i = 0; i < 5000; i++) expect(held.has((stream.next().value as ShopTask).firstMessage)).toBe(false);
  });

  test('more tasks come after those that are there; other tasks are another version', async () => {
    const more = shopTasks({ testTasks: 300 });
    expect(more.size).toBe(700);
    for (const task of tasks) expect(more.get(task.id)).toEqual(task);
    expect(await versionWith({ requests: 1, several: 0.25 })).toBe('1 (requests 1, several 0.25)');
    const target = { kind: 'shop', requests: 3, testTasks: 250 };
    const environment = await openEnvironment(target, { store: {} as never, kinds: registry.environments });
    expect((await environment.describe()).version).toBe('1 (requests 3, testTasks 250)');
    expect((await environment.tasks('test')).map(({ id }) => id)).toEqual(
      Array.from({ length: 250 }, (_, i) => `test-${i}`),
    );
  });
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

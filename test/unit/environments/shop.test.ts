import { createHash } from 'node:crypto';
import type { AssistantMessage, ToolCall } from '../../../src/domain/messages';
import { openEnvironment } from '../../../src/environments/open';
import {
  createShop,
  isForbidden,
  openEpisode,
  referenceOf,
  type ShopParameters,
  shopTasks,
  skillsOf,
} from '../../../examples/shop/target/shop';
import { type ShopTask, type Skill, SKILLS, splitOf, taskStream } from '../../../examples/shop/target/tasks';
import { demonstrate } from '../../../examples/shop/target/reference-agent';
import { random } from '../../../examples/shop/target/in-process';
import { registry } from '../../support/kinds';

const tasks = [...shopTasks().values()];
const text = (content: string): AssistantMessage => ({ role: 'assistant', content });
const calls = (...made: Omit<ToolCall, 'id'>[]): AssistantMessage => ({
  role: 'assistant',
  content: '',
  toolCalls: made.map((c, i) => ({ id: `call_${i}`, ...c })),
});
const find = (wanted: (task: ShopTask) => boolean): ShopTask => tasks.find(wanted)!;
const only = (skill: Skill) => (task: ShopTask) => task.skills.length === 1 && task.skills[0] === skill;

describe('tasks', () => {
  const of = (parameters: Partial<ShopParameters>) => [...shopTasks(parameters).values()];
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

  test('requests is the most that is asked for, several the share of tasks that need several skills', () => {
    const numbers = (all: readonly ShopTask[]) => [...new Set(all.map(({ requests }) => requests.length))].sort();
    expect([1, 2, 3].map((requests) => numbers(of({ requests })))).toEqual([[1], [1, 2], [1, 2, 3]]);
    const share = (several: number) => of({ several }).filter(({ skills }) => skills.length > 1).length / 600;
    expect([share(0), share(1)]).toEqual([0, 1]);
    expect(share(0.8)).toBeCloseTo(0.8, 1);
  });

  test('an unknown task is refused with its name', async () => {
    await expect(createShop().reset({ id: 'train-9999', seed: 1 })).rejects.toThrow('unknown task "train-9999"');
    expect(() => skillsOf('x')).toThrow('unknown task "x"');
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

describe('episodes', () => {
  test('bad calls are error observations, and three of them end the episode', async () => {
    const { user, items } = find(only('tell')).database;
    const item = items[0]?.item ?? '';
    const held = { item, id: items[0]?.id };
    const bad: [name: string, given: Record<string, unknown>, observation: string][] = [
      ['delete_all', {}, 'error : unknown tool'],
      ['toString', {}, 'error : unknown tool'],
      ['get_account', { user: 'bob' }, 'error : bad arguments'],
      ['get_account', {}, 'error : bad arguments'],
      ['get_account', { user, city: 'rome' }, 'error : bad arguments'],
      ['change_address', { user, city: 'mars' }, 'error : bad arguments'],
      ['return_item', { ...held, refund: 7 }, 'error : bad arguments'],
      ['cancel_item', { item, id: items[1]?.id }, 'error : unknown item'],
      ['exchange_item', { ...held, new_item: item, new_id: 'i00' }, 'error : unknown item'],
    ];
    for (const [name, given, observation] of bad) {
      const call = { name, arguments: given };
      const episode = openEpisode(find(only('tell')));
      const before = await episode.step(calls(call));
      expect(before.messages).toEqual([{ role: 'tool', toolCallId: 'call_0', content: observation }]);
      expect((await episode.step(calls(call))).done).toBe(false);
      expect(await episode.step(calls(call))).toMatchObject({ done: true, stopReason: 'too_many_errors' });
    }
  });

  test('an item that was acted on is gone', async () => {
    const task = find((t) => only('tell')(t) && t.requests[0]?.verb === 'cancel');
    const [action] = referenceOf(task).actions;
    const look = { name: 'get_account', arguments: { user: task.database.user } };
    const { messages } = await openEpisode(task).step(calls({ ...look }, { ...action! }, { ...action! }, { ...look }));
    const [first, ok, again, second] = messages.map((m) => m.content);
    expect([ok, again]).toEqual(['ok', 'error : unknown item']);
    expect(first).toContain(String(action?.arguments['id']));
    expect(second).not.toContain(String(action?.arguments['id']));
  });

  test('ten steps end the episode without a reward', async () => {
    const task = find(only('refuse'));
    const episode = openEpisode(task);
    const look = calls({ name: 'get_account', arguments: { user: task.database.user } });
    await episode.step({ ...look, content: 'not allowed' });
    for (let i = 2; i < 10; i++) expect((await episode.step(look)).done).toBe(false);
    expect(await episode.step(look)).toMatchObject({ done: true, stopReason: 'max_steps' });
    expect(await episode.evaluate('max_steps')).toMatchObject({ reward: 0, breakdown: { db: 1, info: 0 } });
  });
});

describe('reward', () => {
  const score = async (task: ShopTask, said: string, ...made: Omit<ToolCall, 'id'>[]) => {
    const episode = openEpisode(task);
    if (made.length > 0) await episode.step(calls(...made));
    return episode.evaluate((await episode.step(text(said))).stopReason!);
  };

  test('what is forbidden must be denied and left undone', async () => {
    const task = find(only('refuse'));
    const request = task.requests[0]!;
    if (request.verb === 'address' || !isForbidden(request)) throw new Error('not a refusal');
    expect(await score(task, 'that is not allowed .')).toMatchObject({ reward: 1, breakdown: { db: 1, info: 1 } });
    expect(await score(task, 'done .')).toMatchObject({ reward: 0, breakdown: { db: 1, info: 0 } });
    const write = { name: 'cancel_item', arguments: { item: request.target.item, id: request.target.id } };
    expect(await score(task, 'not allowed .', write)).toMatchObject({ reward: 0, breakdown: { db: 0, info: 1 } });
  });

  test('amounts: the right one must be told, and no wrong one', async () => {
    const task = find(only('tell'));
    const { actions, tell } = referenceOf(task);
    const amount = tell[0] ?? '';
    const wrong = String(Number(amount) + 5);
    expect(await score(task, `it is ${amount} .`, ...actions)).toMatchObject({ reward: 1 });
    const amiss = [wrong, `${amount} or ${wrong}`, `1${amount}`, `${amount} , not allowed`].map(
      (said) => `it is ${said} .`,
    );
    for (const said of ['done .', ...amiss]) expect(await score(task, said, ...actions)).toMatchObject({ reward: 0 });
  });

  test('the order of writes does not matter, one write too many does', async () => {
    const task = find((t) => only('complete_all')(t) && t.database.items.length > 2);
    const { actions } = referenceOf(task);
    expect((await score(task, 'done .', ...[...actions].reverse())).reward).toBe(1);
    const used = new Set(actions.map((a) => a.arguments['id']));
    const spare = task.database.items.find((i) => !used.has(i.id))!;
    const extra = { name: 'rush_item', arguments: { item: spare.item, id: spare.id } };
    expect((await score(task, 'done .', ...actions, extra)).breakdown).toEqual({ db: 0, info: 1 });
  });
});

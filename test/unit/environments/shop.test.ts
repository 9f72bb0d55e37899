import { createHash } from 'node:crypto';
import type { AssistantMessage, ToolCall } from '../../../src/domain/messages';
import type { Episode } from '../../../src/domain/environment';
import { openEnvironment } from '../../../src/environments/open';
import { createShop, isForbidden, openEpisode, referenceOf } from '../../../src/environments/shop/shop';
import {
  type ShopParameters,
  type ShopTask,
  shopTasks,
  type Skill,
  SKILLS,
  skillsOf,
  splitOf,
  taskStream,
} from '../../../src/environments/shop/tasks';
import { demonstrate } from '../../../src/environments/shop/reference-agent';
import { random } from '../../../src/environments/shop/random';

const tasks = [...shopTasks().values()];
const text = (content: string): AssistantMessage => ({ role: 'assistant', content });
const calls = (...made: Omit<ToolCall, 'id'>[]): AssistantMessage => ({
  role: 'assistant',
  content: '',
  toolCalls: made.map((c, i) => ({ id: `call_${i}`, ...c })),
});
const play = async (lacks: Skill[]): Promise<Map<ShopTask, number>> => {
  const rewards = new Map<ShopTask, number>();
  for (const task of tasks) {
    const { evaluation } = await demonstrate({ task, lacks: new Set(lacks), rng: random(task.id) });
    rewards.set(task, evaluation.reward);
  }
  return rewards;
};
const find = (wanted: (task: ShopTask) => boolean): ShopTask => {
  const task = tasks.find(wanted);
  if (!task) throw new Error('no such task');
  return task;
};
const only = (skill: Skill) => (task: ShopTask) => task.skills.length === 1 && task.skills[0] === skill;
const finish = async (episode: Episode, ...messages: AssistantMessage[]) => {
  let last = await episode.step(messages[0] as AssistantMessage);
  for (const message of messages.slice(1)) last = await episode.step(message);
  return { last, evaluation: await episode.evaluate(last.stopReason ?? 'user_stop') };
};

describe('tasks', () => {
  test('both splits have their tasks, with different first messages everywhere', async () => {
    const shop = createShop();
    for (const split of ['train', 'test'] as const) {
      const listed = await shop.tasks(split);
      expect(listed).toHaveLength({ train: 400, test: 200 }[split]);
      for (const { id } of listed) expect(splitOf(shopTasks().get(id)?.firstMessage ?? '')).toBe(split);
    }
    expect(new Set(tasks.map((t) => t.firstMessage)).size).toBe(600);
  });

  test('the demonstrations have no first message of a test task', () => {
    const held = new Set(tasks.filter((t) => t.id.startsWith('test')).map((t) => t.firstMessage));
    const stream = taskStream({ stream: 'demonstration-1', split: 'train', distinct: false });
    for (let i = 0; i < 5000; i++) expect(held.has((stream.next().value as ShopTask).firstMessage)).toBe(false);
  });

  test('a task carries one to three skills, about half of them one, and every skill occurs', () => {
    const share = (n: number): number => tasks.filter((t) => t.skills.length === n).length / tasks.length;
    expect(share(1) + share(2) + share(3)).toBe(1);
    expect(share(1)).toBeGreaterThan(0.4);
    expect(share(2)).toBeGreaterThan(0.25);
    expect(share(3)).toBeGreaterThan(0.08);
    for (const skill of SKILLS) expect(tasks.filter((t) => t.skills.includes(skill)).length).toBeGreaterThan(90);
  });

  test('words shared inside an account are those of a twin only', () => {
    for (const { database, skills } of tasks) {
      const words = database.items.flatMap((i) => i.item.split(' '));
      expect(words.length - new Set(words).size).toBe(skills.includes('choose') ? 1 : 0);
      expect(new Set(database.items.map((i) => i.id)).size).toBe(database.items.length);
    }
  });

  test('an unknown task is refused with its name', async () => {
    await expect(createShop().reset({ id: 'train-9999', seed: 1 })).rejects.toThrow('unknown task "train-9999"');
    expect(() => skillsOf('x')).toThrow('unknown task "x"');
  });
});

describe('parameters', () => {
  const of = (parameters: Partial<ShopParameters>) => [...shopTasks(parameters).values()];
  const versionWith = async (parameters: Partial<ShopParameters>) => (await createShop(parameters).describe()).version;
  const several = (all: readonly ShopTask[]) => all.filter(({ skills }) => skills.length > 1).length / all.length;

  test('without them every task is what it always was', async () => {
    const sha256 = createHash('sha256').update(JSON.stringify(tasks)).digest('hex');
    expect(sha256).toBe('cca5dc8cbde623c2748ee23aa9e1fe38704c3144d61601dafd86efc8e01a7f73');
    expect(of({ requests: 2, several: 0.5, trainTasks: 400, testTasks: 200 })).toEqual(tasks);
    expect(await versionWith({})).toBe('1');
  });

  test('more tasks come after those that are there, and are the same environment', async () => {
    const more = shopTasks({ testTasks: 300 });
    expect(more.size).toBe(700);
    for (const task of tasks) expect(more.get(task.id)).toEqual(task);
    expect(await versionWith({ testTasks: 300 })).toBe('1 (testTasks 300)');
    const listed = await createShop({ testTasks: 300, trainTasks: 20 }).tasks('test');
    expect(listed.map(({ id }) => id)).toEqual(Array.from({ length: 300 }, (_, i) => `test-${i}`));
    expect(await createShop({ trainTasks: 20 }).tasks('train')).toHaveLength(20);
  });

  test('other tasks are another version', async () => {
    expect(await versionWith({ requests: 3 })).toBe('1 (requests 3)');
    expect(await versionWith({ requests: 1, several: 0.25 })).toBe('1 (requests 1, several 0.25)');
  });

  test('several is the share of tasks that need several skills', () => {
    expect(several(of({ several: 0 }))).toBe(0);
    expect(several(of({ several: 1 }))).toBe(1);
    expect(several(of({ several: 0.8 }))).toBeCloseTo(0.8, 1);
  });

  test('requests is the most that one conversation asks for', () => {
    const numbers = (all: readonly ShopTask[]) => [...new Set(all.map(({ requests }) => requests.length))].sort();
    expect([1, 2, 3].map((requests) => numbers(of({ requests })))).toEqual([[1], [1, 2], [1, 2, 3]]);
    expect(of({ requests: 1 }).filter(({ skills }) => skills.includes('complete_all'))).toEqual([]);
  });

  const settings = [
    { requests: 1, several: 1, testTasks: 300 },
    { requests: 2, several: 0, testTasks: 300 },
    { requests: 2, several: 1, testTasks: 300 },
    { requests: 3, several: 0, testTasks: 300 },
    { requests: 3, several: 1, testTasks: 300 },
  ].map((setting) => ({ trainTasks: 50, ...setting }));

  test.each(settings)('$requests requests, several $several: the scripted policy solves all tasks', async (setting) => {
    const shop = createShop(setting);
    for (const task of of(setting)) {
      const { messages, evaluation } = await demonstrate({ task, lacks: new Set(), rng: random(task.id) });
      expect([task.id, evaluation.reward]).toEqual([task.id, 1]);
      // The same through the environment's own door.
      const episode = await shop.reset({ id: task.id, seed: 1 });
      for (const message of messages) if (message.role === 'assistant') await episode.step(message);
      expect((await episode.evaluate('user_stop')).reward).toBe(1);
      const words = task.database.items.flatMap(({ item }) => item.split(' '));
      expect(words.length - new Set(words).size).toBe(task.skills.includes('choose') ? 1 : 0);
    }
    for (const split of ['train', 'test'] as const)
      for (const { id } of await shop.tasks(split))
        expect(splitOf(shopTasks(setting).get(id)?.firstMessage ?? '')).toBe(split);
  });

  test.each(SKILLS)('with three requests, lacking %s fails exactly the tasks that carry it', async (skill) => {
    for (const task of of({ requests: 3, several: 0.7, trainTasks: 200, testTasks: 100 })) {
      const { evaluation } = await demonstrate({ task, lacks: new Set([skill]), rng: random(task.id) });
      expect([task.id, evaluation.reward]).toEqual([task.id, task.skills.includes(skill) ? 0 : 1]);
    }
  });

  test('they are options of the built-in kind', async () => {
    const target = { kind: 'builtin', name: 'shop', requests: 3, testTasks: 250 };
    const environment = await openEnvironment(target, { store: {} as never });
    expect((await environment.describe()).version).toBe('1 (requests 3, testTasks 250)');
    expect(await environment.tasks('test')).toHaveLength(250);
  });
});

describe('the scripted policy', () => {
  test('solves every task', async () => {
    const rewards = await play([]);
    expect([...rewards].filter(([, reward]) => reward !== 1).map(([task]) => task.id)).toEqual([]);
  });

  test.each(SKILLS)('lacking %s it fails exactly the tasks that carry it', async (skill) => {
    const rewards = await play([skill]);
    const wrong = [...rewards].filter(([task, reward]) => reward !== (task.skills.includes(skill) ? 0 : 1));
    expect(wrong.map(([task]) => task.id)).toEqual([]);
  });

  test('gives the same trajectory twice, and no observation is undefined', async () => {
    for (const task of tasks.slice(0, 100)) {
      const lacks = new Set(SKILLS);
      const [a, b] = [
        await demonstrate({ task, lacks, rng: random('a') }),
        await demonstrate({ task, lacks, rng: random('a') }),
      ];
      expect(a).toEqual(b);
      expect(JSON.stringify(a)).not.toMatch(/undefined|NaN/);
    }
  });
});

describe('episodes', () => {
  const shop = createShop();

  test('open episodes do not disturb each other', async () => {
    const task = find(only('tell'));
    const [a, b] = [await shop.reset({ id: task.id, seed: 1 }), await shop.reset({ id: task.id, seed: 1 })];
    await a.step(calls(...referenceOf(task).actions));
    expect((await b.evaluate('user_stop')).breakdown['db']).toBe(0);
    expect((await a.evaluate('user_stop')).breakdown['db']).toBe(1);
  });

  test('the user tells the account when asked and says goodbye to anything else', async () => {
    const task = find(only('ask'));
    const episode = await shop.reset({ id: task.id, seed: 1 });
    expect(task.firstMessage).not.toContain(task.database.user);
    expect(await episode.step(text('what is your account ?'))).toEqual({
      messages: [{ role: 'user', content: `my account is ${task.database.user} .` }],
      done: false,
    });
    expect(await episode.step(text('hello'))).toMatchObject({ done: true, stopReason: 'user_stop' });
  });

  test('bad calls are error observations, and three of them end the episode', async () => {
    const { user, items } = find(only('tell')).database;
    const item = items[0]?.item ?? '';
    const bad: [Omit<ToolCall, 'id'>, string][] = [
      [{ name: 'delete_all', arguments: {} }, 'error : unknown tool'],
      [{ name: 'toString', arguments: {} }, 'error : unknown tool'],
      [{ name: 'get_account', arguments: { user: 'bob' } }, 'error : bad arguments'],
      [{ name: 'get_account', arguments: {} }, 'error : bad arguments'],
      [{ name: 'get_account', arguments: { user, city: 'rome' } }, 'error : bad arguments'],
      [{ name: 'change_address', arguments: { user, city: 'mars' } }, 'error : bad arguments'],
      [{ name: 'return_item', arguments: { item, id: items[0]?.id, refund: 7 } }, 'error : bad arguments'],
      [{ name: 'cancel_item', arguments: { item, id: items[1]?.id } }, 'error : unknown item'],
      [
        { name: 'exchange_item', arguments: { item, id: items[0]?.id, new_item: item, new_id: 'i00' } },
        'error : unknown item',
      ],
    ];
    for (const [call, observation] of bad) {
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
    const messages = made.length > 0 ? [calls(...made), text(said)] : [text(said)];
    return (await finish(openEpisode(task), ...messages)).evaluation;
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
    const told = async (said: string): Promise<number> => (await score(task, said, ...actions)).reward;
    expect(await told(`it is ${amount} .`)).toBe(1);
    expect(await told('done .')).toBe(0);
    expect(await told(`it is ${wrong} .`)).toBe(0);
    expect(await told(`it is ${amount} or ${wrong} .`)).toBe(0);
    expect(await told(`it is 1${amount} .`)).toBe(0);
    expect(await told(`it is ${amount} , not allowed .`)).toBe(0);
  });

  test('doing nothing earns nothing on tasks that are not refusals alone', async () => {
    for (const task of tasks)
      if (referenceOf(task).actions.length > 0) expect((await score(task, 'done .')).breakdown['db']).toBe(0);
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

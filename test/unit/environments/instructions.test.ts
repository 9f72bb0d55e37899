/** The target `instructions`: its tasks, its episodes, what solves them and what does not. */
import { createHash } from 'node:crypto';
import type { Evaluation } from '../../../src/domain/environment';
import type { Message } from '../../../src/domain/messages';
import { checkEnvironment } from '../../../src/environments/conformance';
import { createInstructions, openEpisode } from '../../../src/environments/instructions/instructions';
import { KINDS } from '../../../src/environments/instructions/kinds';
import { drawTasks, GROUPS, type InstructionTask } from '../../../src/environments/instructions/tasks';
import { plainWords, stem, wordsOf, TOPICS } from '../../../src/environments/instructions/topics';
import { writtenAnswer } from '../../support/instructions-writer';
import { openEnvironment } from '../../../src/environments/open';
import { judgeBase } from '../../../src/domain/base-check';
import { compactOne } from '../../../src/domain/transcript';
import { scoredRollout } from '../../support/scored-rollout';
import type { ScoredRollout } from '../../../src/domain/rollout';

const [train, test_] = [drawTasks('train', 400), drawTasks('test', 200)];
const tasks = [...train, ...test_];
type Policy = (task: InstructionTask, turn: number, before: string[]) => string;

async function played(task: InstructionTask, policy: Policy): Promise<{ messages: Message[]; evaluation: Evaluation }> {
  const episode = openEpisode(task);
  const messages = [...episode.start.messages];
  const answers: string[] = [];
  for (;;) {
    answers.push(policy(task, answers.length, answers));
    const message = { role: 'assistant' as const, content: answers.at(-1)! };
    const result = await episode.step(message);
    messages.push(message, ...result.messages);
    if (result.done) return { messages, evaluation: await episode.evaluate(result.stopReason!) };
  }
}
/** How many of the tasks it solves. */
async function solved(policy: Policy, some = tasks): Promise<number> {
  const all = await Promise.all(some.map((task) => played(task, policy)));
  return all.filter(({ evaluation }) => evaluation.reward === 1).length;
}
const find = (kinds: string[]): InstructionTask =>
  drawTasks('train', 2000).find(
    ({ turns }) => turns.length === 1 && turns[0]!.instructions.map(({ kind }) => kind).join() === kinds.join(),
  )!;

describe('tasks', () => {
  test('the splits share no topic, and no content word of a topic', () => {
    const words = ({ own }: (typeof TOPICS.train)[number]) => own.map(stem);
    const known = new Set(TOPICS.train.flatMap(words));
    expect(TOPICS.test.flatMap(words).filter((word) => known.has(word))).toEqual([]);
    expect(TOPICS.train).toEqual(expect.arrayContaining(train.map(({ topic }) => topic)));
    expect(TOPICS.test).toEqual(expect.arrayContaining(test_.map(({ topic }) => topic)));
  });

  test('are the same ones each time, the first of more', () => {
    expect(drawTasks('test', 200)).toEqual(test_);
    expect(drawTasks('train', 500).slice(0, 400)).toEqual(train);
    const digest = createHash('sha256').update(JSON.stringify(tasks)).digest('hex');
    // Another one is another version of the environment.
    expect(digest.slice(0, 16)).toBe('0c0db67f51b12370');
  });

  test('the environment lists them by how much they ask for, never by what', async () => {
    const environment = await openEnvironment({ kind: 'builtin', name: 'instructions' }, { store: undefined as never });
    expect((await environment.describe()).version).toBe('1');
    expect((await environment.tasks('train')).map(({ id }) => id)).toEqual(train.map(({ id }) => id));
    const listed = await environment.tasks('test');
    expect(listed).toHaveLength(200);
    expect(new Set(listed.flatMap(({ groups }) => groups))).toEqual(new Set(GROUPS.map(({ name }) => name)));
    const more = createInstructions({ testTasks: 300 });
    expect((await more.describe()).version).toBe('1 (testTasks 300)');
  });
});

describe('the scripted writer', () => {
  test('solves every task, in texts of at most fifty words', async () => {
    const failed: unknown[] = [];
    for (const task of tasks) {
      const { messages, evaluation } = await played(task, writtenAnswer);
      if (evaluation.reward !== 1) failed.push([task.id, messages, evaluation]);
      for (const { role, content } of messages)
        if (role === 'assistant') expect(wordsOf(content).length).toBeLessThan(51);
    }
    expect(failed).toEqual([]);
  });

  test('fails where one instruction is left out', async () => {
    // An answer to the second message alone, or to the first alone.
    const first = tasks.filter(({ turns }) => turns.length > 1 && !turns[1]!.reworded);
    const count = await solved((task) => writtenAnswer({ ...task, turns: task.turns.slice(0, 1) }, 0), first);
    expect(count).toBeLessThan(0.35 * first.length);
  });
});

describe('an answer must be an answer', () => {
  const request: Policy = ({ turns }, turn) => turns[turn]!.text;
  const filler = 'It is a thing that many of us know well and that we can all see or hear about from time to time';

  test.each<[string, Policy]>([
    ['nothing', () => ''],
    ['the request', request],
    ['all requests', ({ turns }) => turns.map(({ text }) => text).join(' ')],
    ["the topic's name over and over", ({ topic }) => Array(12).fill(topic.name).join(' ')],
    ["the topic's words as a list", ({ topic }) => [...topic.own, ...topic.related, ...topic.own].join(' ')],
    ['one sentence over and over', ({ topic }) => Array(4).fill(`We like ${topic.name} a lot.`).join(' ')],
    ['a fixed long text', () => `${filler}. ${filler.replace('thing', 'place')}.`],
  ])('%s', async (_name, policy) => expect(await solved(policy)).toBe(0));

  test('the same plain sentences about the topic keep only what asks for little', async () => {
    const plain: Policy = ({ topic }) =>
      `We often talk about ${topic.name} and ${topic.related[0]} here. It makes us glad.`;
    const count = await solved(plain);
    expect([count > 30, count < 0.25 * tasks.length]).toEqual([true, true]);
  });

  test('each part is told in the breakdown', async () => {
    const task = find(['include_word']);
    const [word] = task.turns[0]!.instructions[0]!.demands.include!;
    const good = `Some of us think of ${task.topic.name} by the ${word} and ${task.topic.related[1]} as well.`;
    const of = async (text: string) => (await played(task, () => text)).evaluation;
    const parts = ['include_word', 'long_enough', 'on_topic', 'no_repetition', 'own_words', 'prose', 'answered'];
    const whole = Object.fromEntries(parts.map((part) => [part, 1]));
    expect(await of(good)).toEqual({ reward: 1, breakdown: whole });
    for (const [part, text] of [
      ['include_word', good.replace(word!, 'lake')],
      ['no_repetition', `${good} ${good}`],
      ['on_topic', `We saw a ${word} that was as big as it could be and then went home.`],
    ] as const)
      expect(await of(text)).toEqual({ reward: 0, breakdown: { ...whole, [part]: 0 } });
    expect(await of(`${task.topic.name} ${word}`)).toMatchObject({ reward: 0, breakdown: { long_enough: 0 } });
    expect(await of(task.turns[0]!.text)).toMatchObject({ reward: 0, breakdown: { own_words: 0 } });
  });
});

describe('two turns', () => {
  const [added, reworded] = [false, true].map((again) =>
    tasks.find(({ turns }) => turns.length > 1 && Boolean(turns[1]!.reworded) === again)!,
  );

  test('the user speaks again once the agent has answered, and then the episode is over', async () => {
    const { messages, evaluation } = await played(added!, writtenAnswer);
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user', 'assistant']);
    expect(messages[3]!.content).toBe(added!.turns[1]!.text);
    const kinds = added!.turns.flatMap((turn) => turn.instructions.map(({ kind }) => kind));
    expect(Object.keys(evaluation.breakdown)).toEqual(expect.arrayContaining([...kinds, 'first_answer']));
  });

  test('a first answer that is none, or a last one that is missing, has no reward', async () => {
    const late = await played(added!, (task, turn) => (turn === 0 ? 'Yes.' : writtenAnswer(task, turn)));
    expect(late.evaluation).toMatchObject({ reward: 0, breakdown: { first_answer: 0, answered: 1 } });
    const episode = openEpisode(added!);
    await episode.step({ role: 'assistant', content: writtenAnswer(added!, 1) });
    expect(await episode.evaluate('context_length')).toMatchObject({ reward: 0, breakdown: { answered: 0 } });
  });

  test('the same again is no rewording', async () => {
    const same = await played(reworded!, (task) => writtenAnswer(task, 0));
    expect(same.evaluation).toMatchObject({ reward: 0, breakdown: { reworded: 0 } });
  });
});

test('calls are answered by observations, and do not end the task before its steps are over', async () => {
  const episode = openEpisode(train[0]!);
  const call = { role: 'assistant' as const, content: '', toolCalls: [{ id: 'a', name: 'write', arguments: {} }] };
  expect(await episode.step(call)).toEqual({
    messages: [{ role: 'tool', toolCallId: 'a', content: 'error : there are no tools ; answer with text' }],
    done: false,
  });
  for (let n = 0; n < 2; n++) await episode.step(call);
  expect(await episode.step(call)).toMatchObject({ done: true, stopReason: 'max_steps' });
  expect((await episode.evaluate('max_steps')).reward).toBe(0);
});

test('it keeps the contract of environments', async () => {
  const environment = createInstructions();
  const notes: string[] = [];
  const findings = await checkEnvironment(environment, {
    again: async () => createInstructions(),
    onNote: ({ problem }) => void notes.push(problem),
  });
  expect(findings).toEqual([]);
  expect(notes).toEqual(['tools is empty: the agent only talks']);
});

test('neither the analyst nor the check of the base sees kinds or misses calls', async () => {
  const some = await Promise.all(train.slice(0, 4).map((task) => played(task, writtenAnswer)));
  const rollouts = some.map(({ messages, evaluation }, n) => ({
    ...(scoredRollout({ name: `r${n}`, task: train[n]!.id, reward: 0 }) as ScoredRollout),
    ...evaluation,
    reward: 0,
    messages,
  }));
  const kinds = new Set(KINDS.map(({ name }) => name));
  for (const rollout of rollouts) {
    const shown = plainWords(compactOne({ rollout, id: 'r1' }).replaceAll('_', '-'));
    expect(shown.filter((word) => kinds.has(word.replaceAll('-', '_')) && word.includes('-'))).toEqual([]);
  }
  const tokens = { tokens: 100, unknown: 0, words: [] };
  expect(judgeBase({ tokens, rollouts, tools: [] }).problems).toEqual([]);
});

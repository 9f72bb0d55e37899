/** Trajectories of Harbor (ATIF) as conversations: alone, as lines, and in the folders that Harbor writes. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConversations } from '../../../src/conversations/read';
import { temporaryFolder } from '../../support/temporary-folder';

const root = temporaryFolder();

const trajectory = (more: object = {}) => ({
  schema_version: 'ATIF-v1.6',
  session_id: 's1',
  agent: {
    ...{ name: 'terminus-2', version: '2.0', model_name: 'm' },
    tool_definitions: [{ type: 'function', function: { name: 'sh' } }],
  },
  steps: [
    { step_id: 1, source: 'system', message: 'rules' },
    {
      step_id: 2,
      source: 'user',
      message: [
        { type: 'text', text: 'see' },
        { type: 'image', source: { media_type: 'image/png', path: 'a.png' } },
      ],
    },
    {
      step_id: 3,
      source: 'agent',
      message: 'I look.',
      reasoning_content: 'hm',
      tool_calls: [
        { tool_call_id: 'a', function_name: 'sh', arguments: { cmd: 'ls' } },
        { tool_call_id: 'b', function_name: 'sh', arguments: {} },
      ],
      observation: { results: [{ source_call_id: 'b', content: 'two' }, { content: 'one' }, { source_call_id: 'a' }] },
      metrics: { prompt_tokens: 3 },
    },
    { step_id: 4, source: 'system', message: '', observation: { results: [{ content: 'compacted' }] } },
    { step_id: 5, source: 'agent', message: 'done' },
  ],
  final_metrics: { total_prompt_tokens: 3 },
  ...more,
});

function put(name: string, text: string): string {
  const file = join(mkdtempSync(join(root, 'atif-')), name);
  writeFileSync(file, text);
  return file;
}
const read = (...files: string[]) => readConversations({ files });

it('has a message for each step and each of its results, in this order', async () => {
  const file = put('x.json', JSON.stringify(trajectory({ extra: { reward: 0.5, task: 't' } })));
  const { conversations, notes } = await read(file);
  expect(conversations).toEqual([
    {
      id: 's1',
      task: 't',
      reward: 0.5,
      tools: [{ name: 'sh', description: '', parameters: { type: 'object', properties: {} } }],
      messages: [
        { role: 'system', content: 'rules' },
        { role: 'user', content: 'see\n[image]' },
        {
          role: 'assistant',
          content: 'I look.',
          toolCalls: [
            { id: 'a', name: 'sh', arguments: { cmd: 'ls' } },
            { id: 'b', name: 'sh', arguments: {} },
          ],
        },
        { role: 'tool', toolCallId: 'b', content: 'two' },
        { role: 'tool', toolCallId: 'a', content: 'one' },
        { role: 'tool', toolCallId: 'a', content: '' },
        { role: 'tool', toolCallId: 'call_6', content: 'compacted' },
        { role: 'assistant', content: 'done' },
      ],
    },
  ]);
  expect(notes.map((note) => note.replace(`${file}: `, ''))).toEqual([
    'content of type reasoning is left out (1)',
    'content of type image is shown as [image] (1)',
  ]);
});

it('may be a line beside others, and is left out where nothing says how it ended', async () => {
  const lines = [
    trajectory({ trajectory_id: 'a', final_metrics: { extra: { passed: true } } }),
    trajectory({ trajectory_id: 'b' }),
    { id: 'c', messages: [{ role: 'assistant', content: 'hi' }], passed: false },
    trajectory({
      trajectory_id: 'd',
      extra: { success: false },
      continued_trajectory_ref: 'trajectory.cont-1.json',
      subagent_trajectories: [{}],
    }),
  ];
  const { conversations, notes } = await read(put('x.jsonl', lines.map((line) => JSON.stringify(line)).join('\n')));
  expect(conversations.map(({ id, reward }) => `${id} ${reward}`)).toEqual(['a 1', 'c 0', 'd 0']);
  expect(notes.map((note) => note.replace(/^\S+ /, ''))).toEqual([
    "left out 1 of 4 trajectories: nothing says how they ended (extra.reward, or Harbor's result.json)",
    expect.stringMatching(/^content of type reasoning/),
    expect.stringMatching(/^content of type image/),
    'a trajectory goes on in another file, which is not read with it (1)',
    'trajectories of subagents are left out (1)',
  ]);
});

describe('of a trial of Harbor', () => {
  function trial(result: object | string): string {
    const folder = mkdtempSync(join(root, 'trial-'));
    mkdirSync(join(folder, 'agent'));
    writeFileSync(join(folder, 'result.json'), typeof result === 'string' ? result : JSON.stringify(result));
    const file = join(folder, 'agent', 'trajectory.json');
    writeFileSync(file, JSON.stringify(trajectory()));
    return file;
  }

  it('is what its verifier says, and what it did not score is left out', async () => {
    const named = { task_name: 'hello', trial_name: 'hello__1' };
    const files = [
      trial({ ...named, verifier_result: { rewards: { style: 0.2, reward: 1 } } }),
      trial({ ...named, trial_name: 'hello__2', verifier_result: { rewards: { right: 0 } } }),
      // Harbor's own mean takes it for 0.
      trial({ ...named, trial_name: 'hello__3', verifier_result: null, exception_info: { exception_type: 'X' } }),
      trial('no JSON'),
    ];
    const { conversations, notes } = await read(...files);
    const told = conversations.map(({ id, task, reward }) => `${id} ${task} ${reward}`);
    expect(told).toEqual(['hello__1 hello 1', 'hello__2 hello 0']);
    expect(notes.filter((note) => note.includes('left out 1 of 1'))).toHaveLength(2);
    const { conversations: styled } = await readConversations({ files: [files[0]!], scorer: 'style' });
    expect(styled[0]?.reward).toBe(0.2);
  });

  it('needs to be told which of several rewards counts', async () => {
    await expect(read(trial({ verifier_result: { rewards: { a: 1, b: 0 } } }))).rejects.toThrow(
      /has scores of a, b; say which one counts with --scorer NAME/,
    );
  });
});

const textCall = { tool_call_id: 'a', function_name: 'f', arguments: 'x' };
it.each([
  [{ schema_version: 'ATIF-v2.0' }, /schema_version is "ATIF-v2.0"; it must be a version of ATIF 1, such as ATIF-v1.7/],
  [{ steps: [{ source: 'bot', message: '' }] }, /steps\[0\]\.source is "bot"; it must be system, user or agent/],
  [{ steps: [{ source: 'user', message: '' }] }, /steps is .*; it must be a list with a step of the agent/],
  [
    { steps: [{ source: 'agent', message: '', tool_calls: [textCall] }] },
    /steps\[0\]\.tool_calls\[0\]\.arguments is "x"; it must be an object/,
  ],
  [{ extra: { reward: 7 } }, /extra\.reward is 7; it must be a number from 0 to 1/],
])('names what is wrong with %j', async (more, problem) => {
  await expect(read(put('x.json', JSON.stringify(trajectory(more))))).rejects.toThrow(problem);
});

it('refuses what is nested so deep that it could not be written again', async () => {
  const text = JSON.stringify(trajectory({ extra: { reward: 1 } })).replace(
    '"ls"',
    `${'['.repeat(300)}${']'.repeat(300)}`,
  );
  await expect(read(put('x.json', text))).rejects.toThrow(/x\.json is nested deeper than 200; it must be a trajectory/);
});

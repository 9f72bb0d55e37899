/** Logs of other projects: which of their fields become a conversation, its outcome and its reference. */
import { readConversations } from '../../../src/conversations/read';
import { fileOf } from '../../support/analyse-endpoint';

const read = async (value: unknown, name: string) =>
  (await readConversations({ files: [fileOf([JSON.stringify(value, null, 2)], name)] })).conversations;

const user = { role: 'user', content: 'Renew my book.' };
const done = { role: 'assistant', content: 'Done.' };
const renew = { name: 'renew', arguments: { card: '7' } };
const reference = { actions: [renew], tell: ['June'] };
const called = [
  { role: 'user', content: 'Renew my book.' },
  { role: 'assistant', content: '', toolCalls: [{ id: 'c1', ...renew }] },
  { role: 'tool', toolCallId: 'c1', content: 'renewed' },
  { role: 'assistant', content: 'Done.' },
];

it('reads a list of tau-bench, without runs that an exception ended', async () => {
  const call = { id: 'c1', type: 'function', function: { name: 'renew', arguments: '{"card": "7"}' } };
  const traj = [
    user,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c1', name: 'renew', content: 'renewed' },
    done,
  ];
  const task = { instruction: 'x', actions: [{ name: 'renew', kwargs: renew.arguments }], outputs: ['June'] };
  const runs = [
    { task_id: 4, trial: 1, reward: 1, info: { task, source: 'user' }, traj },
    { task_id: 5, trial: 0, reward: 0, info: { error: 'timeout', traceback: '' }, traj: [] },
  ];
  expect(await read(runs, 'runs.json')).toEqual([{ id: '4-1', task: '4', reward: 1, messages: called, reference }]);
});

it('reads results of tau2-bench with the policy, and the reference of the agent', async () => {
  const simulation = {
    id: '0b5f',
    task_id: '4',
    trial: 0,
    reward_info: { reward: 0 },
    messages: [
      { ...user, turn_idx: 0 },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c1', ...renew, requestor: 'assistant' }], cost: 0.1 },
      { id: 'c1', role: 'tool', content: 'renewed', requestor: 'assistant', error: false },
      done,
    ],
  };
  const actions = [
    { action_id: '4_0', ...renew, requestor: 'assistant' },
    { action_id: '4_1', name: 'toggle', arguments: {}, requestor: 'user' },
  ];
  const results = {
    info: { environment_info: { policy: 'rules' } },
    tasks: [{ id: '4', evaluation_criteria: { actions, communicate_info: ['June'] } }],
    simulations: [simulation, { ...simulation, trial: 1, task_id: 'unknown', reward_info: { reward: 1 } }],
  };
  const messages = [{ role: 'system', content: 'rules' }, ...called];
  expect(await read(results, 'results.json')).toMatchObject([
    { id: '4-0', task: '4', reward: 0, messages, reference },
    { id: 'unknown-1', task: 'unknown', reward: 1, messages },
  ]);
});

it('reads rows of verifiers, whose calls may be text', async () => {
  const call = JSON.stringify({ id: 'c1', type: 'function', function: { name: 'renew', arguments: '{"card": "7"}' } });
  const completion = [
    { role: 'assistant', content: '', tool_calls: [call] },
    { role: 'tool', content: 'renewed', tool_calls: null },
    done,
  ];
  const row = { id: 3, task: 'default', prompt: [user], completion, reward: 0.5, success: 0, info: { oai_tools: [] } };
  expect(await read([row, row], 'rows.json')).toMatchObject(
    ['0', '1'].map((id) => ({ id, task: '3', reward: 0.5, messages: called })),
  );
});

it("reads AgentDojo's run, the only one of its file", async () => {
  const text = (content: string) => [{ type: 'text', content }];
  const call = { id: 'c1', function: 'renew', args: renew.arguments, placeholder_args: null };
  const run = {
    utility: false,
    messages: [
      { role: 'user', content: text('Renew my book.') },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', content: text('renewed'), tool_call_id: 'c1', tool_call: call, error: null },
      { role: 'assistant', content: text('Done.') },
    ],
  };
  expect(await read(run, 'task_4.json')).toMatchObject([{ id: 'task_4.json', reward: 0, messages: called }]);
});

it.each([
  [{ resolved: true }, 1],
  [{ score: 0.5 }, 0.5],
  [{ score: 3, passed: false }, 0],
])('takes the outcome from %j', async (outcome, reward) => {
  const { conversations } = await readConversations({ files: [fileOf([{ messages: [user, done], ...outcome }])] });
  expect(conversations[0]?.reward).toBe(reward);
});

it('leaves out a conversation that an error ended before the agent answered, however it was graded', async () => {
  const lines = [
    { messages: [user], error: '503', passed: false },
    { messages: [user, done], error: '503', passed: false },
  ];
  const { conversations, notes } = await readConversations({ files: [fileOf(lines)] });
  expect(conversations.map(({ id }) => id)).toEqual(['2']);
  expect(notes.join()).toContain('is left out (1)');
});

/**
 * A small environment of two parties, as a process: the agent must get the user to switch mobile data on with the user's own phone, and a
 * judge says whether the agent was kind. The user ends it with BYE.
 */
import process from 'node:process';
import { createInterface } from 'node:readline';

const tool = (name) => ({ name, description: name, parameters: { type: 'object', properties: {} } });
const [agentTools, userTools] = [[tool('look_up')], [tool('toggle_data')]];
const episodes = new Map();

const methods = {
  describe: () => ({
    name: 'phone',
    version: '1',
    policy: 'be kind',
    tools: agentTools,
    maxSteps: 6,
    hasReference: false,
  }),
  tasks: ({ split }) => ({ tasks: [0, 1].map((n) => ({ id: `${split}-${n}`, split })) }),
  reset: ({ task }) => {
    const episode = `${task.id}/${episodes.size}`;
    episodes.set(episode, { data: false });
    const messages = [
      { role: 'system', content: 'be kind' },
      { role: 'assistant', content: 'how can i help ?' },
    ];
    const user = [
      { role: 'system', content: 'your data is off' },
      { role: 'user', content: 'how can i help ?' },
    ];
    return { episode, messages, tools: agentTools, maxSteps: 6, user, userTools };
  },
  step: ({ episode, message }) => {
    const calls = message.toolCalls ?? [];
    if (message.role === 'assistant') {
      const results = calls.map(({ id }) => ({ role: 'tool', toolCallId: id, content: 'line u17' }));
      const user = calls.length ? undefined : [{ role: 'user', content: message.content }];
      return { messages: results, done: false, user };
    }
    if (calls.length) episodes.get(episode).data = true;
    const results = calls.map(({ id }) => ({ role: 'tool', toolCallId: id, content: 'data is on', requestor: 'user' }));
    if (results.length) return { messages: results, done: false, user: results };
    const done = message.content.includes('BYE');
    return { messages: [], done, stopReason: done ? 'user_stop' : undefined };
  },
  evaluate: ({ episode, judgements }) => {
    if (!judgements) return { judge: [[{ role: 'user', content: 'was the agent kind ?' }]] };
    const [data, kind] = [Number(episodes.get(episode).data), Number(judgements[0] === 'yes')];
    return { reward: data * kind, breakdown: { data, kind } };
  },
  close: () => ({}),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: methods[method](params) })}\n`);
});

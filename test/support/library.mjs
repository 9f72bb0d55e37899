/**
 * A small help desk in plain English, as a process, for base models that know no English: a member asks for a book by its title, the clerk has
 * to lend that one. A third of the tasks asks for nothing that can be lent: whoever does nothing there is right.
 */
import process from 'node:process';
import { createInterface } from 'node:readline';

const policy =
  'You are the clerk of a small public library. Members write to you because they would like to borrow a book. Lend the book whose title the ' +
  'member gives, and only if it is on the shelf; otherwise explain politely why you cannot help, and never promise anything else.';
const title = { type: 'string', description: 'title of the book' };
const tools = [
  {
    name: 'lend_book',
    description: 'lend the book {title}',
    parameters: { type: 'object', properties: { title }, required: ['title'] },
  },
];
const titles = ['Middlemarch', 'Great Expectations', 'The Moonstone', 'Persuasion', 'Villette', 'Silas Marner'];
const episodes = new Map();
let count = 0;

/** Every third task asks for a book that is away. */
const wanted = (id) => {
  const n = Number(id.split('-')[1]);
  return { title: titles[n % titles.length], away: n % 3 === 0, n };
};

const methods = {
  describe: () => ({ name: 'library', version: '1', policy, tools, maxSteps: 4, hasReference: true }),
  tasks: ({ split }) => ({ tasks: Array.from({ length: 24 }, (_, n) => ({ id: `${split}-${n}`, split })) }),
  reset: ({ task }) => {
    const episode = `e${++count}`;
    episodes.set(episode, { task: task.id, lent: [] });
    const { title: asked, away, n } = wanted(task.id);
    const request = away
      ? `Good evening, somebody else has already taken ${asked} home, could you still arrange something for member ${n}?`
      : `Good morning, I am member number ${n} and I would love to borrow ${asked} over the weekend, please.`;
    const messages = [
      { role: 'system', content: policy },
      { role: 'user', content: request },
    ];
    return { episode, messages, tools, maxSteps: 4 };
  },
  step: ({ episode, message }) => {
    const calls = message.toolCalls ?? [];
    for (const call of calls) episodes.get(episode).lent.push(call.arguments.title);
    if (calls.length > 0)
      return { messages: calls.map(({ id }) => ({ role: 'tool', toolCallId: id, content: 'lent' })), done: false };
    return { messages: [], done: true, stopReason: 'user_stop' };
  },
  evaluate: ({ episode }) => {
    const { task, lent } = episodes.get(episode);
    const { title: asked, away } = wanted(task);
    const right = away ? [] : [asked];
    const reward = Number(JSON.stringify(lent) === JSON.stringify(right));
    const actions = right.map((one) => ({ name: 'lend_book', arguments: { title: one } }));
    return { reward, breakdown: { lent: reward }, reference: { actions, tell: [] } };
  },
  close: () => ({}),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: methods[method](params) })}\n`);
});

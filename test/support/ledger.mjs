/**
 * A small environment as a process, honest but for the one violation that its argument names: accounts hold money, the agent moves some of
 * it. Tasks name an account and an amount; the goal is one payment, and a message with the rest to the user.
 */
import process from 'node:process';
import { createInterface } from 'node:readline';

const violation = process.argv[2] ?? 'none';
const is = (...names) => names.includes(violation);
/** A number of this process: in a namespace all have one and the same id. */
const own = Math.floor(Math.random() * 1e6);

const properties = {
  account: { type: 'string', pattern: '^a[0-9]$' },
  amount: { type: 'integer', minimum: 1, maximum: 9 },
};
const tool = (name, fields, readOnlyHint) => ({
  name,
  description: `${name} an account`,
  parameters: {
    type: 'object',
    properties: Object.fromEntries(fields.map((f) => [f, properties[f]])),
    required: fields,
  },
  annotations: { readOnlyHint },
});
const tools = [tool('look_up', ['account'], true), tool('pay', ['account', 'amount'], false)];
if (is('malformed required')) tools[1].parameters.required = 'amount';
if (is('tool listed twice')) tools.push(tools[1]);

const size = { train: 6, test: 3 };
const wanted = (id) => {
  const n = Number(/^(?:train|test)-([0-5])$/.exec(id)?.[1] ?? NaN);
  if (Number.isNaN(n) && !is('unknown task is begun')) throw new Error(`unknown task ${id}`);
  return { account: `a${n % 3}`, amount: (n || 0) + 1 };
};
const money = () => ({ a0: 10, a1: 20, a2: 30 });
const shared = money();
const episodes = new Map();
let count = 0;
let latest;

function use(state, { name, arguments: given }) {
  const known = tools.find((each) => each.name === name);
  if (!known) return `error : unknown tool ${name}`;
  if (is('write never succeeds') && name === 'pay') return 'error : the ledger is closed';
  for (const field of known.parameters.required) {
    if (given[field] === undefined && is('crashes on a missing field')) throw new Error(`KeyError: ${field}`);
    const fits = field === 'amount' ? Number.isInteger(given[field]) : typeof given[field] === 'string';
    if (!fits) return `error : ${field} is missing or of a wrong type`;
  }
  if (!(given.account in state.money)) return `error : account ${given.account} is unknown`;
  if (name === 'pay') state.money[given.account] -= given.amount;
  return is('state shared without a word') ? 'ok' : String(state.money[given.account]);
}

function toolMessages(calls, state) {
  if (is('answers the first call only')) calls = calls.slice(0, 1);
  const messages = calls.map((call) => ({
    role: 'tool',
    toolCallId: call.id,
    content: use(state, call),
  }));
  if (is('answers a call that nobody made')) messages.push({ role: 'tool', toolCallId: 'call_99', content: 'ok' });
  return messages;
}

const methods = {
  describe: () => ({
    name: 'ledger',
    version: '1',
    policy: is('empty policy') ? ' ' : 'pay what is asked',
    tools,
    maxSteps: 8,
    hasReference: !is('no reference'),
  }),
  tasks: ({ split }) => {
    let tasks = Array.from({ length: size[split] }, (_, n) => ({ id: `${split}-${n}`, split }));
    if (is('tasks differ between calls')) tasks = tasks.slice(0, 2 + (count++ % 2));
    if (is('tasks differ between processes')) tasks = tasks.concat({ id: `${split}-${own}`, split });
    if (is('empty test split') && split === 'test') tasks = [];
    return { tasks };
  },
  reset: ({ task }) => {
    const { account, amount } = wanted(task.id);
    if (is('silent')) return new Promise(() => {});
    const episode = `e${++count}`;
    const state = {
      task: task.id,
      money: is('shared state', 'state shared without a word') ? shared : money(),
      said: '',
    };
    episodes.set(episode, state);
    latest = state;
    const extra = is('start depends on the process')
      ? ` at ${own}`
      : is('start depends on the clock')
        ? ` at ${process.hrtime.bigint()}`
        : '';
    const messages = [
      { role: 'system', content: 'pay what is asked' },
      { role: 'user', content: `pay ${amount} from ${account}${extra}` },
    ];
    return { episode, messages, tools, maxSteps: is('maxSteps out of range') ? 0 : 8 };
  },
  step: ({ episode, message }) => {
    const state = is('state shared while open') ? latest : episodes.get(episode);
    if (message.content) state.said = message.content;
    const calls = message.toolCalls ?? [];
    if (calls.length > 0) return { messages: toolMessages(calls, state), done: false };
    return { messages: [{ role: 'user', content: 'bye' }], done: true, stopReason: 'user_stop' };
  },
  evaluate: ({ episode }) => {
    const state = episodes.get(episode);
    const { account, amount } = wanted(state.task);
    const right = money();
    right[account] -= amount;
    const paid = JSON.stringify(right) === JSON.stringify(state.money) ? 1 : 0;
    const action = { name: 'pay', arguments: { account, amount } };
    if (is('reference names no tool')) action.name = 'transfer';
    if (is('reference does not fit the schema')) action.arguments.amount = `${amount}`;
    if (is('reference does not score')) action.arguments.amount = (amount % 9) + 1;
    if (is('reference fails in the test split') && state.task.startsWith('test')) action.arguments.account = 'a9';
    let reward = paid;
    if (is('reward out of range')) reward = 2;
    if (is('reward for doing nothing') && !state.said) reward = 1;
    if (is('reward depends on the process')) reward = reward === 1 ? 1 : (own % 1000) / 2000;
    return {
      reward,
      breakdown: { paid },
      ...(is('no reference', 'reference is missing')
        ? {}
        : { reference: { actions: [action], tell: is('reference depends on the process') ? [`${own}`] : [] } }),
    };
  },
  close: ({ episode }) => (episodes.delete(episode), {}),
};

createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params } = JSON.parse(line);
  const send = (answer) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...answer })}\n`);
  try {
    if (is('dies in a step') && method === 'step')
      throw (process.stderr.write('Traceback: no ledger\n'), process.exit(3));
    send({ result: await methods[method](params) });
  } catch (error) {
    send({ error: { code: -32000, message: String(error) } });
  }
});

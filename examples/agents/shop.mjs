/**
 * An agent on the official `openai` package. What it knows of campaigns: the task comes on stdin, the reward is the last line on stdout. The same
 * program, pointed at `campaign serve`, is served what was trained.
 */
import process from 'node:process';
import OpenAI from 'openai';
import { json } from 'node:stream/consumers';
import { createShop } from '../../dist/examples/shop/target/shop.js';

const task = await json(process.stdin);
const shop = await createShop().reset({ id: task.id, seed: 0 });
const openai = new OpenAI(); // OPENAI_BASE_URL and OPENAI_API_KEY
const tools = shop.start.tools.map(({ name, description, parameters }) => ({
  type: 'function',
  function: { name, description, parameters },
}));

const asSent = ({ role, content, toolCallId }) =>
  role === 'tool' ? { role, content, tool_call_id: toolCallId } : { role, content };
const asHeard = ({ id, function: { name, arguments: text } }) => ({ id, name, arguments: JSON.parse(text) });

const messages = shop.start.messages.map(asSent);
for (;;) {
  const model = process.env.OPENAI_MODEL ?? 'trace';
  const { choices } = await openai.chat.completions.create({ model, messages, tools });
  const { message } = choices[0];
  const { content, tool_calls: calls } = message;
  messages.push(message);
  const said = { role: 'assistant', content: content ?? '', ...(calls && { toolCalls: calls.map(asHeard) }) };
  const { messages: answers, done, stopReason } = await shop.step(said);
  messages.push(...answers.map(asSent));
  if (!done) continue;
  const { reward, breakdown } = await shop.evaluate(stopReason ?? 'agent_stop');
  process.stdout.write(`${JSON.stringify({ reward, breakdown })}\n`);
  break;
}

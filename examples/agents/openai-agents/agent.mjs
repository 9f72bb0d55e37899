/** The agent of shop.mjs on a public framework, `@openai/agents`: the framework asks the model and calls the tools. */
import process from 'node:process';
import { Agent, run, setOpenAIAPI, setTracingDisabled, tool, user } from '@openai/agents';
import { json } from 'node:stream/consumers';
import { createShop } from '../../../dist/examples/shop/target/shop.js';

setOpenAIAPI('chat_completions');
setTracingDisabled(true);
const task = await json(process.stdin);
const shop = await createShop().reset({ id: task.id, seed: 0 });
let last = { done: false };

const tools = shop.start.tools.map(({ name, description, parameters }) =>
  tool({
    name,
    description,
    parameters: { ...parameters, additionalProperties: true },
    strict: false,
    async execute(given) {
      if (last.done) return 'error : the conversation is over';
      last = await shop.step({ role: 'assistant', content: '', toolCalls: [{ id: 'call', name, arguments: given }] });
      return last.messages.map(({ content }) => content).join('\n');
    },
  }),
);
const [system, first] = shop.start.messages;
const model = process.env.OPENAI_MODEL ?? 'trace';
const agent = new Agent({ name: 'help desk', model, instructions: system.content, tools });

let heard = [user(first.content)];
while (!last.done) {
  const { history, finalOutput } = await run(agent, heard, { maxTurns: 20 });
  if (last.done) break;
  last = await shop.step({ role: 'assistant', content: finalOutput ?? '' });
  heard = [...history, ...last.messages.map(({ content }) => user(content))];
}
const { reward, breakdown } = await shop.evaluate(last.stopReason ?? 'agent_stop');
process.stdout.write(`${JSON.stringify({ reward, breakdown })}\n`);

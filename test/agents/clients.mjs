/** Asks the cases that come on stdin with the official client, and writes what it hears as test/agents/clients.py does for Python's. Not in jest, where errors of timeouts are other ones. */
import process from 'node:process';
import OpenAI from 'openai';
import { json } from 'node:stream/consumers';

async function heard({ url, key, seconds = 60, streamed, body }) {
  const { completions } = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0, timeout: seconds * 1000 }).chat;
  try {
    const { choices, usage } = streamed
      ? await completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion()
      : await completions.create(body);
    const [{ message, finish_reason: finish, logprobs }] = choices;
    return {
      content: message.content ?? '',
      calls: (message.tool_calls ?? []).map(({ id, function: called }) => ({
        id,
        name: called.name,
        arguments: called.arguments,
      })),
      finish,
      logprobs: Boolean(logprobs?.content?.length),
      usage: Boolean(usage?.total_tokens),
    };
  } catch (error) {
    if (error instanceof OpenAI.APIConnectionTimeoutError) return { error: 'timeout' };
    if (!(error instanceof OpenAI.APIError)) throw error;
    const { status, code, param, type } = error;
    return { error: { status, code, param, type } };
  }
}

const outcomes = [];
for (const one of await json(process.stdin)) outcomes.push(await heard(one));
process.stdout.write(JSON.stringify(outcomes));

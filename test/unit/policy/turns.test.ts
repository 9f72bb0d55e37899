import { createTurns } from '../../../src/policy/turns';
import { parseTurn } from '../../../src/policy/wire';
import { completion } from '../../support/dialect-server';

const asked = {
  model: 'base',
  messages: [{ role: 'user' as const, content: 'hello' }],
  tools: [],
  sampling: { temperature: 1, topP: 1, maxTokens: 12 },
  seed: 1,
};
/** Prompts are 1, 2, 3 (dialect-server.ts). */
const serverWith = (changes: object = {}) => {
  const calls: string[] = [];
  let absences = 0;
  const called =
    (name: string, answer: unknown) =>
    (body: object): Promise<unknown> => {
      calls.push('add_generation_prompt' in body ? `${name} alone` : name);
      return Promise.resolve(answer);
    };
  const server = {
    complete: called('complete', completion({ content: 'hi' })),
    render: called('render', undefined),
    generate: called('generate', undefined),
    derender: called('derender', undefined),
    absences: () => absences,
    ...changes,
  };
  return { server, calls, called, startAgain: () => absences++ };
};

test('a turn that goes on as it was sampled is one request', async () => {
  const { server, calls } = serverWith();
  const turn = createTurns(server);
  expect(await turn({ ...asked, before: [1, 2] })).toMatchObject({ promptIds: [1, 2, 3], tokenIds: [5, 6] });
  expect(calls).toEqual(['complete']);
});

test('a server that renders for nobody is asked once, and again after it was away', async () => {
  const { server, calls, startAgain } = serverWith();
  const turn = createTurns(server);
  for (let n = 0; n < 3; n++) expect((await turn({ ...asked, before: [1, 9] })).promptIds).toEqual([1, 2, 3]);
  expect(calls).toEqual(['complete', 'render', 'complete', 'complete']);
  startAgain();
  await turn({ ...asked, before: [1, 9] });
  expect(calls.slice(4)).toEqual(['complete', 'render']);
});

test('once a turn had to be continued, later ones are no longer sampled in vain', async () => {
  const { server, calls, called } = serverWith();
  // 6 ends a turn; of the policy's last one the server makes 4 6 where 5 6 was sampled, and 7 is what was said since.
  const prompts: Record<string, number[]> = { alone: [1, 4, 6], whole: [1, 4, 6, 7] };
  const turn = createTurns({
    ...server,
    render: (body) => {
      const { messages, ...rest } = body as { messages: object[]; add_generation_prompt?: boolean };
      calls.push('render');
      const token_ids =
        rest.add_generation_prompt === false ? (messages.length === 1 ? [1] : prompts['alone']) : prompts['whole'];
      return Promise.resolve({ token_ids, sampling_params: { seed: 1 } });
    },
    generate: (body) => {
      calls.push(`generate after ${(body as { token_ids: number[] }).token_ids.join(' ')}`);
      const choice = {
        token_ids: [8, 6],
        finish_reason: 'stop',
        logprobs: { content: [{ logprob: -1 }, { logprob: -2 }] },
      };
      return Promise.resolve({ choices: [choice] });
    },
    derender: called('derender', { choices: [{ message: { content: 'hi' } }] }),
  });
  const messages = [
    ...asked.messages,
    { role: 'assistant' as const, content: 'a' },
    { role: 'user' as const, content: 'b' },
  ];
  expect(await turn({ ...asked, messages, before: [1, 5, 6] })).toMatchObject({
    ...{ promptIds: [1, 5, 6, 7], tokenIds: [8, 6], logprobs: [-1, -2], message: { content: 'hi' } },
  });
  expect(calls).toEqual(['complete', 'render', 'render', 'render', 'generate after 1 5 6 7', 'derender']);
  // This one was cut off: its end is put behind it.
  expect(await turn({ ...asked, messages, before: [1, 5] })).toMatchObject({ promptIds: [1, 5, 6, 7] });
  expect(calls.slice(6)).toEqual(['render', 'render', 'render', 'generate after 1 5 6 7', 'derender']);
});

test.each([
  ['<think>\nwell\n</think>\n\nhello', 'hello'],
  ['well\n</think>hello', 'hello'],
  ['<think>not to its end', ''],
  ['hello', 'hello'],
])('of %j nobody but the policy sees what it thought', (content, seen) => {
  expect(parseTurn(completion({ content })).message.content).toBe(seen);
});

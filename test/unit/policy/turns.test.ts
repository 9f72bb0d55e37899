import { createTurns } from '../../../src/policy/turns';
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

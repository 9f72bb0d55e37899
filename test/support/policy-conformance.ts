/**
 * Checks what a campaign needs of a policy server (docs/policy-server.md), on one that runs: the embedded server or vLLM. Unloads what it loads; the
 * adapters stay in the store.
 */
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArtifactRef } from '../../src/domain/artifacts';
import type { Message } from '../../src/domain/messages';
import type { FixedPolicy } from '../../src/domain/rollout';
import type { tryAdapter } from '../../src/policy/client';
import { createMerger } from '../../src/policy/merge';
import type { PolicyServer } from '../../src/policy/server';
import { createTurns, startsWith } from '../../src/policy/turns';
import {
  completionBody,
  derenderBody,
  generateBody,
  parseDerendered,
  parseGenerated,
  parseRendered,
  type Turn,
  type TurnRequest,
} from '../../src/policy/wire';
import { newFolder } from './temporary-folder';

/** The server, and what adapters are tried with, on the store of the server's client. */
interface Probed extends Pick<Parameters<typeof tryAdapter>[0], 'store' | 'client' | 'python' | 'base'> {
  server: PolicyServer;
  contextTokens: number;
  /** Writes a random adapter of the base model. */
  writeAdapter: (o: { seed: number; folder: string }) => Promise<void>;
}

const TOOL = {
  name: 'get_account',
  description: 'Looks an account up.',
  parameters: { type: 'object', properties: { user: { type: 'string' } } },
};
const SAMPLED = { temperature: 1, topP: 1, maxTokens: 24 };
const GREEDY = { ...SAMPLED, temperature: 0 };
const TOO_LONG = { type: 'ContextLengthExceeded' };

/** Turns that come back from text otherwise than they were sampled, in the formats of calls that there are. */
const SHAPES = [
  ...[
    '{"name": "get_account", "arguments": {"user": "mia"}}',
    '{"name":"get_account","arguments":{"user":"mia","n":1e3}}',
  ].flatMap((call) => [
    `<tool_call>\n${call}\n</tool_call>`,
    `One moment.<tool_call>${call}</tool_call>`,
    `One moment.\n\n<tool_call>\n${call}\n</tool_call>\n`,
    call.replace('arguments', 'parameters'),
  ]),
  '<|call|>get_account(user="mia")',
  'one moment <|call|> get_account( user = "mia" )',
  ' words with white space around them \n',
];

/** One after the other: what a server does in a batch is up to rounding. */
export async function expectConformance(o: Probed): Promise<void> {
  for (const check of [checkTurns, checkTools, checkIds, checkContext, checkAdapters, checkErrors]) await check(o);
}

const ask = ({ client, base }: Probed, changes: Partial<TurnRequest> = {}): Promise<Turn> =>
  client.sample({
    policy: { base, adapters: [] },
    messages: [{ role: 'user', content: 'What is the state of my order? It was a red lamp.' }],
    tools: [],
    sampling: SAMPLED,
    seed: 1,
    ...changes,
  });

async function checkTurns(o: Probed): Promise<void> {
  const [one, again, other] = [await ask(o), await ask(o), await ask(o, { seed: 2 })];
  expect(again).toMatchObject({ promptIds: one.promptIds, tokenIds: one.tokenIds });
  expect(other.tokenIds).not.toEqual(one.tokenIds);
  expect(Math.max(...one.logprobs)).toBeLessThanOrEqual(0);
  const greedy = [await ask(o, { sampling: GREEDY }), await ask(o, { sampling: GREEDY, seed: 2 })];
  expect(greedy[0]!.tokenIds).toEqual(greedy[1]!.tokenIds);
  expect((await ask(o, { sampling: { ...SAMPLED, maxTokens: 1 } })).tokenIds).toHaveLength(1);
}

async function checkTools(o: Probed): Promise<void> {
  // Some templates show them beside what the system says.
  const messages = (['system', 'user'] as const).map((role) => ({ role, content: 'Help with the order.' }));
  const [without, shown] = [await ask(o, { messages }), await ask(o, { messages, tools: [TOOL] })];
  expect(shown.promptIds.length).toBeGreaterThan(without.promptIds.length);
}

/** Turns are continued as they were sampled, one row each. */
async function checkIds({ server, contextTokens }: Probed): Promise<void> {
  const model = (await server.models()).base;
  const turn = createTurns(server);
  const opening: Message[] = [{ role: 'user', content: 'Look at the account of mia.' }];
  const asked = { model, tools: [TOOL], sampling: { ...SAMPLED, maxTokens: 1 }, seed: 1 };
  const idsOf = async (messages: Message[], ends = false): Promise<number[]> => {
    const body = { ...completionBody({ ...asked, messages }), add_generation_prompt: !ends };
    return parseRendered(await server.render(body)).token_ids;
  };
  const prompt = await idsOf(opening);
  const ended = await firstEnded((seed) =>
    turn({ ...asked, messages: opening, sampling: { ...SAMPLED, maxTokens: 64 }, seed }),
  );
  const end = ended.tokenIds.at(-1)!;
  const pieces = [...new Set([...prompt, ...ended.tokenIds])].filter((id) => id !== end);
  const random = Array.from({ length: 8 }, (_, k) =>
    Array.from({ length: 12 }, (_, n) => pieces[(7 ** (k + 1) * (n + 1) * 31) % pieces.length]!),
  );
  const texts = await Promise.all(SHAPES.map((content) => idsOf([...opening, { role: 'assistant', content }], true)));
  const shapes = texts.map((ids) => ids.slice(prompt.length, ids.lastIndexOf(end)));
  const added = new Set<string>();
  for (const words of [...shapes, ...random]) {
    const sampled = { finishReason: 'stop' as const, tokenIds: [...words, end], logprobs: [] };
    const body = derenderBody({ asked: { ...asked, messages: opening }, promptIds: prompt, sampled });
    const { message } = parseDerendered(await server.derender(body), sampled);
    const before = [...prompt, ...sampled.tokenIds];
    const next: Message = { role: 'user', content: 'And now?' };
    const { promptIds } = await turn({ ...asked, messages: [...opening, message, next], before });
    expect([words, startsWith(promptIds, before)]).toEqual([words, true]);
    added.add(promptIds.slice(before.length).join());
  }
  expect(added.size).toBe(1);
  const body = { ...completionBody({ ...asked, messages: opening }), max_tokens: 24 };
  const rendered = parseRendered(await server.render(body));
  const filling = async (count: number) =>
    parseGenerated(await server.generate(generateBody(rendered, Array<number>(count).fill(prompt[0]!))));
  expect((await filling(contextTokens - 2)).tokenIds.length).toBeLessThanOrEqual(2);
  await expect(filling(contextTokens + 8)).rejects.toMatchObject(TOO_LONG);
}

async function firstEnded(sample: (seed: number) => Promise<Turn>): Promise<Turn> {
  for (let seed = 0; seed < 64; seed++) {
    const sampled = await sample(seed);
    if (sampled.finishReason === 'stop') return sampled;
  }
  throw new Error('no turn ended by itself, so that none can be continued');
}

async function checkContext(o: Probed): Promise<void> {
  const prompt = (words: number) => [{ role: 'user' as const, content: 'one '.repeat(words) }];
  const sampling = { ...SAMPLED, maxTokens: 1 };
  const lengthOf = async (words: number) => (await ask(o, { messages: prompt(words), sampling })).promptIds.length;
  const [eight, sixteen] = [await lengthOf(8), await lengthOf(16)];
  const most = Math.floor((o.contextTokens - eight) / ((sixteen - eight) / 8)) + 8;
  const long = { messages: prompt(most - 4), sampling: { ...SAMPLED, maxTokens: o.contextTokens } };
  const near = await ask(o, long).catch((error: unknown) => expect(error).toMatchObject(TOO_LONG));
  if (near) expect(near.promptIds.length + near.tokenIds.length).toBeLessThanOrEqual(o.contextTokens);
  await expect(lengthOf(most + 8)).rejects.toMatchObject(TOO_LONG);
}

async function adapterOf({ store, base, writeAdapter }: Probed, seed: number): Promise<ArtifactRef> {
  const folder = join(newFolder(), 'adapter');
  await writeAdapter({ folder, seed });
  return store.putFolder({ key: `random-adapter/${base}/${seed}`, producer: 'test', inputs: [], folder });
}

async function checkAdapters(o: Probed): Promise<void> {
  const { client, store, python, base } = o;
  const refs = [await adapterOf(o, 1), await adapterOf(o, 2)];
  const merged = await createMerger({ store, python })(refs.map((ref) => ({ ref, weight: 1 })));
  const policies = [...refs, merged].map((ref): FixedPolicy => ({ base, adapters: [{ ref, weight: 1 }] }));
  const plain = await ask(o, { sampling: GREEDY });
  try {
    // At once, as capabilities are trained: where the server holds one at a time, it changes them.
    const turns = await Promise.all(policies.map((policy) => ask(o, { policy, sampling: GREEDY })));
    expect(new Set([plain, ...turns].map(({ logprobs }) => logprobs[0])).size).toBe(4);
    for (const policy of policies) await client.unload(policy);
    const again = await ask(o, { policy: policies[0]!, sampling: GREEDY });
    expect(again.tokenIds).toEqual(turns[0]!.tokenIds);
  } finally {
    for (const policy of policies) await client.unload(policy);
  }
}

async function checkErrors(o: Probed): Promise<void> {
  const { server, store } = o;
  const model = (await server.models()).base;
  const body = { messages: [{ role: 'user' as const, content: 'hello' }], tools: [], sampling: SAMPLED, seed: 1 };
  const unknown = server.complete(completionBody({ ...body, model: 'none-such' }));
  await expect(unknown).rejects.toMatchObject({ type: 'PolicyNotLoaded' });
  const cold = server.complete({ ...completionBody({ ...body, model }), temperature: -1 });
  const message = expect.stringContaining('temperature') as string;
  await expect(cold).rejects.toMatchObject({ type: 'PolicyRequestRejected', message });
  // One that is cut off. A server on another machine finds no such folder: that is a refusal, too.
  const whole = await store.folder((await store.find(`random-adapter/${o.base}/1`))!);
  const folder = newFolder();
  const [config, weights] = ['adapter_config.json', 'adapter_model.safetensors'];
  await copyFile(join(whole, config), join(folder, config));
  await writeFile(join(folder, weights), (await readFile(join(whole, weights))).subarray(0, 100));
  const damaged = server.loadAdapter({ name: 'damaged', path: folder });
  await expect(damaged).rejects.toMatchObject({ type: 'AdapterRefused' });
  await server.health();
}

/**
 * Checks what a campaign needs of a policy server (docs/policy-server.md), on one that runs: the embedded server or vLLM. Unloads what it loads; the
 * adapters stay in the store.
 */
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type CheckItem, MissingRequirement } from '../../src/checks/check';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { createLimit } from '../../src/domain/concurrency';
import { type FailureType, isFailure, reasonOf } from '../../src/domain/failures';
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

/** The server, and what adapters are tried with, on the store of the server's client. */
export interface Probed extends Pick<
  Parameters<typeof tryAdapter>[0],
  'store' | 'client' | 'python' | 'base' | 'rank'
> {
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
export function conformanceChecks(o: Probed): CheckItem[] {
  const { server, client, store, python, base, rank, contextTokens, writeAdapter } = o;
  const inTurn = createLimit(1);
  const ask = (changes: Partial<TurnRequest> = {}): Promise<Turn> =>
    client.sample({
      policy: { base, adapters: [] },
      messages: [{ role: 'user', content: 'What is the state of my order? It was a red lamp.' }],
      tools: [],
      sampling: SAMPLED,
      seed: 1,
      ...changes,
    });

  async function adapterOf(seed: number): Promise<ArtifactRef> {
    const key = `random-adapter/${base}/${seed}`;
    const known = await store.find(key);
    if (known) return known;
    const folder = join(await mkdtemp(join(tmpdir(), 'probe-')), 'adapter');
    try {
      await writeAdapter({ folder, seed });
      return await store.putFolder({ key, producer: 'test', inputs: [], folder });
    } finally {
      await rm(dirname(folder), { recursive: true, force: true });
    }
  }

  const items: Record<string, () => Promise<string | { warning: string }>> = {
    async turns() {
      const [one, again, other] = [await ask(), await ask(), await ask({ seed: 2 })];
      wanted(isEqual(one.promptIds, again.promptIds), 'the same messages give other prompt ids');
      wanted(isEqual(one.tokenIds, again.tokenIds), 'the same seed gives other tokens');
      wanted(Math.max(...one.logprobs) <= 0, 'a log-prob is above 0');
      wanted(!isEqual(one.tokenIds, other.tokenIds), 'another seed gives the same tokens');
      const greedy = [await ask({ sampling: GREEDY }), await ask({ sampling: GREEDY, seed: 2 })];
      wanted(isEqual(greedy[0]!.tokenIds, greedy[1]!.tokenIds), 'temperature 0 depends on the seed');
      const cut = await ask({ sampling: { ...SAMPLED, maxTokens: 1 } });
      wanted(cut.tokenIds.length === 1, `max_tokens 1 gives ${cut.tokenIds.length} tokens`);
      const reasons = [one, other, cut].map(({ finishReason }) => finishReason);
      return `ids and log-probs of what was sampled; finish reasons ${[...new Set(reasons)].join(', ')}`;
    },
    async tools() {
      // Some templates show them beside what the system says.
      const messages = (['system', 'user'] as const).map((role) => ({ role, content: 'Help with the order.' }));
      const [without, shown] = [await ask({ messages }), await ask({ messages, tools: [TOOL] })];
      return shown.promptIds.length > without.promptIds.length
        ? `of ${shown.promptIds.length - without.promptIds.length} tokens in the prompt`
        : { warning: 'the chat template does not show them' };
    },
    async ids() {
      const name = (await server.models()).base;
      const turn = createTurns(server);
      const asked = { model: name, tools: [TOOL], sampling: { ...SAMPLED, maxTokens: 1 }, seed: 1 };
      const opening: Message[] = [{ role: 'user', content: 'Look at the account of mia.' }];
      const idsOf = async (messages: Message[], ends = false): Promise<number[] | undefined> => {
        const body = await server.render({ ...completionBody({ ...asked, messages }), add_generation_prompt: !ends });
        return body === undefined ? undefined : parseRendered(body).token_ids;
      };
      const prompt = await idsOf(opening);
      if (!prompt)
        return {
          warning:
            'a turn that renders otherwise than it was sampled begins a new row: start vLLM with --enable-scale-out',
        };
      const ended = await firstOf(
        64,
        (seed) => turn({ ...asked, messages: opening, sampling: { ...SAMPLED, maxTokens: 64 }, seed }),
        ({ finishReason }) => finishReason === 'stop',
      );
      if (!ended) return { warning: 'no turn ended by itself, so that none could be continued' };
      const end = ended.tokenIds.at(-1)!;
      const next: Message = { role: 'user', content: 'And now?' };
      const added = new Set<string>();
      const pieces = [...new Set([...prompt, ...ended.tokenIds])].filter((id) => id !== end);
      const random = Array.from({ length: 8 }, (_, k) =>
        Array.from({ length: 12 }, (_, n) => pieces[(7 ** (k + 1) * (n + 1) * 31) % pieces.length]!),
      );
      const texts = await Promise.all(
        SHAPES.map(async (content) => (await idsOf([...opening, { role: 'assistant', content }], true))!),
      );
      const shapes = texts.map((ids) => ids.slice(prompt.length, ids.lastIndexOf(end)));
      for (const words of [...shapes, ...random]) {
        const sampled = { finishReason: 'stop' as const, tokenIds: [...words, end], logprobs: [] };
        const body = derenderBody({ asked: { ...asked, messages: opening }, promptIds: prompt, sampled });
        const { message } = parseDerendered(await server.derender(body), sampled);
        const before = [...prompt, ...sampled.tokenIds];
        const { promptIds } = await turn({ ...asked, messages: [...opening, message, next], before });
        wanted(startsWith(promptIds, before), `a turn of the ids ${words.join(' ')} is not continued`);
        added.add(promptIds.slice(before.length).join());
      }
      wanted(added.size === 1, 'the same message adds other ids to other turns');
      const body = { ...completionBody({ ...asked, messages: opening }), max_tokens: 24 };
      const rendered = parseRendered(await server.render(body));
      const filling = async (count: number) =>
        parseGenerated(
          await server.generate(
            generateBody(
              rendered,
              Array.from({ length: count }, () => prompt[0]!),
            ),
          ),
        );
      const { tokenIds } = await filling(contextTokens - 2);
      wanted(
        tokenIds.length <= 2,
        `${contextTokens - 2 + tokenIds.length} tokens are in a context of ${contextTokens}`,
      );
      await filling(contextTokens + 8).then(
        () => wanted(false, 'ids beyond the context are answered'),
        refusedOf('ContextLengthExceeded'),
      );
      return `${shapes.length + random.length} turns are continued as they were sampled, one row each`;
    },
    async context() {
      const prompt = (words: number) => [{ role: 'user' as const, content: 'one '.repeat(words) }];
      const one = { ...SAMPLED, maxTokens: 1 };
      const lengths = await Promise.all(
        [8, 16].map(async (words) => (await ask({ messages: prompt(words), sampling: one })).promptIds.length),
      );
      const perWord = (lengths[1]! - lengths[0]!) / 8;
      const most = Math.floor((contextTokens - lengths[0]!) / perWord) + 8;
      const near = await ask({ messages: prompt(most - 4), sampling: { ...SAMPLED, maxTokens: contextTokens } }).catch(
        refusedOf('ContextLengthExceeded'),
      );
      const all = near === undefined ? 0 : near.promptIds.length + near.tokenIds.length;
      wanted(all <= contextTokens, `${all} tokens are in a context of ${contextTokens}`);
      // The one that just fills it is refused as those beyond it are.
      for (const words of [most, most + 8])
        await ask({ messages: prompt(words), sampling: one }).then(
          ({ promptIds }) =>
            wanted(promptIds.length < contextTokens, `a prompt of ${promptIds.length} tokens is answered`),
          refusedOf('ContextLengthExceeded'),
        );
      return `of ${contextTokens} tokens`;
    },
    async adapters() {
      const refs = [await adapterOf(1), await adapterOf(2)];
      const sum = await createMerger({ store, python })(refs.map((ref) => ({ ref, weight: 1 })));
      const policies = [...refs, sum].map((ref): FixedPolicy => ({ base, adapters: [{ ref, weight: 1 }] }));
      const plain = await ask({ sampling: GREEDY });
      try {
        // At once, as capabilities are trained: where the server holds one at a time, it changes them.
        const turns = await Promise.all(policies.map((policy) => ask({ policy, sampling: GREEDY })));
        const firsts = new Set([plain, ...turns].map(({ logprobs }) => logprobs[0]));
        wanted(firsts.size === 4, 'adapters answer like one another, or like the base');
        for (const policy of policies) await client.unload(policy);
        const again = await ask({ policy: policies[0]!, sampling: GREEDY });
        wanted(isEqual(again.tokenIds, turns[0]!.tokenIds), 'an adapter answers otherwise once it is loaded again');
        return `of rank ${rank} and their sum`;
      } finally {
        for (const policy of policies) await client.unload(policy);
      }
    },
    async errors() {
      const name = (await server.models()).base;
      const body = { messages: [{ role: 'user' as const, content: 'hello' }], tools: [], sampling: SAMPLED, seed: 1 };
      const refused: [string, () => Promise<unknown>, FailureType, RegExp?][] = [
        ['an unknown model', () => server.complete(completionBody({ ...body, model: 'none-such' })), 'PolicyNotLoaded'],
        [
          'temperature -1',
          () => server.complete({ ...completionBody({ ...body, model: name }), temperature: -1 }),
          'PolicyRequestRejected',
          /temperature/,
        ],
        ['a damaged adapter', damaged, 'AdapterRefused'],
      ];
      for (const [what, request, type, reason] of refused)
        await request().then(() => wanted(false, `${what} is taken`), refusedOf(type, reason));
      await server.health();
      return refused.map(([what]) => what).join(', ');
    },
  };

  /** Cut off. A server on another machine finds no such folder: that is a refusal, too. */
  async function damaged(): Promise<void> {
    const whole = await store.folder(await adapterOf(1));
    const folder = await mkdtemp(join(tmpdir(), 'probe-'));
    const [config, weights] = ['adapter_config.json', 'adapter_model.safetensors'];
    try {
      await copyFile(join(whole, config), join(folder, config));
      await writeFile(join(folder, weights), (await readFile(join(whole, weights))).subarray(0, 100));
      await server.loadAdapter({ name: 'damaged', path: folder });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  return Object.entries(items).map(([name, run]) => ({ name, run: () => inTurn(run) }));
}

async function firstOf<Item>(
  most: number,
  make: (n: number) => Promise<Item>,
  is: (item: Item) => boolean,
): Promise<Item | undefined> {
  for (let n = 0; n < most; n++) {
    const item = await make(n);
    if (is(item)) return item;
  }
  return undefined;
}

const isEqual = (one: readonly number[], other: readonly number[]): boolean => one.join() === other.join();

function wanted(holds: boolean, otherwise: string): void {
  if (!holds) throw new MissingRequirement(otherwise);
}

const refusedOf =
  (type: FailureType, reason = /./) =>
  (error: unknown): undefined => {
    if (!isFailure(error, type) || !reason.test(error.message))
      throw new MissingRequirement(`no ${type}: ${reasonOf(error)}`);
  };

/** `campaign analyse` through the real client: an endpoint of ours that answers by what the prompt holds. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../../src/store/open-store';
import { keysOf } from '../../../src/store/campaign-index';
import { openLedger } from '../../../src/llm/ledger';
import { openGiven } from '../../support/open-given';
import { analyse, type AnalyseOptions } from '../../../src/cli/analyse/run';
import type { Analysis } from '../../../src/cli/analyse/result';
import { UserError } from '../../../src/cli/errors';
import { runCampaign } from '../../../src/cli/run/command';
import { startDetached } from '../../../src/cli/run/campaign';
import {
  asksForLabels,
  conversation,
  conversations,
  fileOf,
  GUESS_AT,
  labeled,
  OTHER,
  SKILL,
  startAnalyst,
} from '../../support/analyse-endpoint';
import type { ChatServer } from '../../support/chat-server';
import { wordsOf } from '../../support/browser';
import { shopParts } from '../../support/kinds';
import { newFolder } from '../../support/temporary-folder';

let server: ChatServer;
let [home, said, printed] = ['', '', ''];
beforeEach(async () => {
  server = await startAnalyst();
  home = join(newFolder(), 'home');
  [said, printed] = ['', ''];
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => Boolean((said += String(text))));
  jest.spyOn(console, 'log').mockImplementation((text) => void (printed += `${text}\n`));
});
afterEach(async () => {
  jest.restoreAllMocks();
  await server.close();
});

const run = (options: Partial<AnalyseOptions> = {}, file = fileOf(conversations())) =>
  analyse([file], { home, url: server.url, model: 'reader', passes: 3, yes: true, ...options });

const failure = (...given: Parameters<typeof run>): Promise<UserError> =>
  run(...given).then(
    (code) => Promise.reject(new Error(`it ended with ${code}`)),
    (error: UserError) => error,
  );

const result = (name = 'library'): Analysis =>
  JSON.parse(readFileSync(join(home, name, 'analysis.json'), 'utf8')) as Analysis;
const html = () => readFileSync(join(home, 'library', 'analysis.html'), 'utf8');
const page = () => wordsOf(html());

describe('what comes out', () => {
  it('is the lacking capability, for each failure the step where it begins, and a file for campaigns', async () => {
    expect(await run()).toBe(0);
    const { selection, failures, conversations: counts } = result();
    const { candidates, passes, failedPasses, evidence, faults } = selection;
    expect(counts).toMatchObject({ total: 8, failed: 4, passed: 4 });
    expect([passes, failedPasses]).toEqual([3, []]);
    expect(candidates[0]).toMatchObject({
      name: SKILL,
      selected: true,
      votes: 3,
      coverage: { value: 1, std: 0 },
      delta: { value: 1, std: 0 },
      agreement: { value: 1, n: 8 },
    });
    // All say NA: alpha is not defined.
    expect(candidates[1]).toMatchObject({ name: OTHER, selected: false, votes: 0, agreement: { value: null } });
    expect(evidence?.map(({ capability }) => capability)).toEqual([SKILL, OTHER]);
    expect(evidence?.[0]?.lacking?.map(({ rollout }) => rollout).toSorted()).toEqual(['f0', 'f1', 'f2', 'f3']);
    expect(failures.map(({ conversation: id, begins }) => [id, begins])).toMatchObject(
      ['f0', 'f1', 'f2', 'f3'].map((id) => [
        id,
        { of: 'agent', message: GUESS_AT, votes: 3, reason: 'the <i>number</i> is made up' },
      ]),
    );
    expect(failures[0]?.lacking).toEqual([
      expect.objectContaining({ capability: SKILL, label: 'LACKING', votes: 3, passes: 3, message: GUESS_AT }),
    ]);
    // The message and its neighbours, without the policy.
    expect(failures[0]?.begins?.context.map(({ message, role }) => [message, role])).toEqual([
      [1, 'user'],
      [2, 'assistant'],
      [3, 'tool'],
      [4, 'assistant'],
    ]);
    expect(failures[0]?.begins?.context[1]?.text).toBe('I GUESS your card is 7.\ncalls renew({"card":"7"})');
    expect(faults?.found).toMatchObject([
      { of: 'user', citations: [{ rollout: 'f0', outcome: 'failed', message: GUESS_AT }] },
    ]);
    // A campaign can go on from it: the same selection.
    const file = join(home, 'library', 'capabilities.yaml');
    const given = await openGiven(file, 3);
    expect(given.candidates.map(({ name }) => name)).toEqual([SKILL, OTHER]);
    expect(given.passes[2]?.labels[SKILL]?.lacking_failed.toSorted()).toEqual(['f0', 'f1', 'f2', 'f3']);
    expect(given.passes[2]?.reasons?.[SKILL]?.['f0']?.message).toBe(GUESS_AT);
    expect(given.passes[2]?.failures?.['f0']).toMatchObject({ of: 'agent', message: GUESS_AT });
  });

  it('is a page on which nothing of a conversation or a model can act', async () => {
    const lines = [
      ...conversations(),
      conversation({ id: '<i>', guesses: true, words: '<script>x</script>\u001b[2J' }),
    ];
    await run({}, fileOf(lines));
    expect(page()).toContain('the <i>number</i> is made up');
    expect(page()).toContain('The agent <b>asks</b> for it');
    expect(html()).not.toMatch(/<script>x|<b>asks|<i>/);
    // eslint-disable-next-line no-control-regex -- what must not be there
    expect(html() + printed + said).not.toMatch(/\u001b/);
  });

  it('says where a failure begins that no capability explains, and whose it is', async () => {
    await server.close();
    // The capability explains four of six failures: n makes no guess, and u is the user's.
    server = await startAnalyst((body) => {
      if (!asksForLabels(body)) return undefined;
      const hurried = /^\[(r\d+)\] task u,/m.exec(body.messages[1]?.content ?? '')?.[1] ?? '';
      const answer = JSON.parse(labeled(body).replace(/^.*```json|```$/gs, '')) as object;
      const failure = { of: 'user', message: 3, reason: 'is in a hurry' };
      return JSON.stringify({ ...answer, [hurried]: { failure, labels: {} } });
    });
    const more = [
      conversation({ id: 'n', passed: false }),
      conversation({ id: 'u', guesses: true, words: 'Goodbye.' }),
    ];
    await run({}, fileOf([...conversations(), ...more]));
    const begins = new Map(result().failures.map((one) => [one.conversation, one]));
    expect(begins.get('n')).toMatchObject({ lacking: [], begins: { of: 'agent', message: 2, votes: 3 } });
    expect(begins.get('u')).toMatchObject({ lacking: [], begins: { of: 'user', message: 3, reason: 'is in a hurry' } });
  });

  it('shows a pass that can not be used, and counts it in no vote', async () => {
    const broken = new Set<unknown>();
    await server.close();
    server = await startAnalyst((body) => {
      if (!asksForLabels(body)) return undefined;
      // The pass with the first seed that is seen.
      if (broken.size === 0) broken.add(body['seed']);
      return broken.has(body['seed']) ? 'no idea' : undefined;
    });
    expect(await run({ passes: 4, votes: 3, json: true })).toBe(0);
    expect(JSON.parse(printed)).toEqual(result());
    const { passes, failedPasses, candidates } = result().selection;
    expect([passes, failedPasses.length, candidates[0]?.votes, candidates[0]?.selected]).toEqual([4, 1, 3, true]);
  });
});

describe('before anything is asked', () => {
  afterEach(() => {
    expect(server.requests).toEqual([]);
    expect(existsSync(join(home, 'library'))).toBe(false);
  });

  it('bad lines and files that are too large stop it', async () => {
    const { message, evidence } = await failure({}, fileOf([...conversations(), '{', { messages: [] }]));
    expect(message).toMatch(/library\.jsonl:9 /);
    expect(evidence).toEqual([expect.stringMatching(/library\.jsonl:10 messages/)]);
    const large = fileOf([]);
    truncateSync(large, 600 * 2 ** 20);
    expect((await failure({}, large)).message).toContain('512 MiB');
  });

  const half = (rest: number) => fileOf(conversations().filter((_, n) => n % 2 === rest));
  it.each<[Partial<AnalyseOptions> & { file?: string }, string]>([
    [{ file: half(1) }, 'failed'],
    [{ file: half(0) }, 'passed'],
    [{ url: undefined } as never, '--url'],
    [{ model: undefined } as never, '--model'],
    [{ url: 'nowhere' }, 'url'],
    [{ apiKeyEnv: 'NO_SUCH_KEY' }, '--api-key-env'],
    [{ maxDollars: 1 }, '--max-dollars'],
    [{ votes: 4 }, '--votes'],
    [{ name: 'A b' }, '--name'],
    [{ name: 'artifacts' }, '--name'],
    [{ config: fileOf(['analyst: { kind: llm, modle: x }'], 'analyst.yaml') }, 'modle'],
    [{ config: fileOf(['kind: rules'], 'rules.yaml') }, 'kind'],
    [{ yes: false }, '--yes'],
  ])('what is missing or wrong in what was given stops it, by its flag or field: %j', async (given, field) => {
    const { file, ...options } = given;
    expect((await failure(options, file)).message).toContain(field);
  });
});

it('takes fields from a file of them or a campaign file, whose folder paths count from, with the flags over them', async () => {
  const fields = `{ url: '${server.url}', model: other, temperature: 0.5, parameters: { top_k: 3 }, prompts: mine }`;
  const config = fileOf([`{ name: x, analyst: ${fields} }`], 'campaign.yaml');
  const own = readFileSync(join(__dirname, '../../../prompts/discover.md'), 'utf8');
  mkdirSync(join(dirname(config), 'mine'));
  writeFileSync(join(dirname(config), 'mine', 'discover.md'), `${own}\nAnswer in verse.`);
  await run({ config, url: undefined } as never);
  expect(server.requests[0]?.body).toMatchObject({ model: 'reader', temperature: 0.5, top_k: 3 });
  const asked = server.requests.map(({ body }) => JSON.stringify(body).includes('Answer in verse.'));
  expect(asked).toEqual([true, false, false, false]);
});

describe('going on', () => {
  it('asks nothing twice, not even for other votes', async () => {
    const file = fileOf(conversations());
    await run({}, file);
    expect(server.requests).toHaveLength(4);
    await run({ votes: 2, yes: false }, file);
    expect(server.requests).toHaveLength(4);
    expect(result().selection.rule.votes).toBe(2);
    // More passes cost what they cost.
    await run({ passes: 5 }, file);
    expect(server.requests).toHaveLength(6);
  });

  it('Ctrl-C keeps every reply that came', async () => {
    const file = fileOf(conversations());
    const seeds = () => server.requests.map(({ body }) => `${asksForLabels(body)} ${body['seed']}`);
    const play = server.play;
    let stopped = false;
    const asked = () => seeds().filter((one) => one.startsWith('true')).length;
    server.play = async (body, response) => {
      if (!asksForLabels(body) || asked() === 1) return play(body, response);
      // The others are being answered when the first pass is done and the user has enough.
      while (!said.includes('labels: 1 of 3')) await sleep(5);
      // A second one would end the process.
      if (!stopped) stopped = process.emit('SIGINT');
      return undefined;
    };
    expect(await run({}, file)).toBe(130);
    expect(existsSync(join(home, 'library', 'analysis.json'))).toBe(false);
    const before = server.requests.length;
    server.play = play;
    expect(await run({}, file)).toBe(0);
    // Discovery and the first pass were answered.
    const again = seeds().slice(before);
    expect(again).toHaveLength(2);
    expect(again).not.toContain(seeds()[0]);
  });

  it('has its replies in an index: they stay when a campaign that shares them is deleted', async () => {
    expect(await run()).toBe(0);
    const keys = await keysOf(openFolderStore(join(home, 'artifacts')).files, 'library');
    expect(keys.filter((key) => key.startsWith('reply/'))).toHaveLength(server.requests.length);
  });

  it('stops where the endpoint refuses', async () => {
    server.play = (_, response) => void response.writeHead(401).end('{"error":{"message":"who?"}}') as undefined;
    const { message, evidence } = await failure();
    expect([message, ...evidence].join('\n')).toContain('--api-key-env');
    expect(server.requests).toHaveLength(1);
  });

  it('stops where the dollars are spent, in all runs of the name, and goes on once they are raised', async () => {
    const options = { price: { input: 1000, output: 1000 } };
    const file = fileOf(conversations());
    const { message } = await failure({ ...options, maxDollars: 0.1 }, file);
    expect(message).toContain('--max-dollars');
    expect(server.requests).toHaveLength(1);
    // Discovery and two passes of 0.11 dollars each: the other is left out, as in a campaign.
    expect(await run({ ...options, maxDollars: 0.36 }, file)).toBe(0);
    const { passes, failedPasses, reason } = result().selection;
    expect(passes).toBe(3);
    expect(failedPasses).toHaveLength(1);
    expect(reason).toBeDefined();
    expect(await run({ ...options, maxDollars: 10 }, file)).toBe(0);
    expect([result().selection.failedPasses, server.requests.length]).toEqual([[], 4]);
  });

  it('refuses where no pass can be used', async () => {
    await server.close();
    server = await startAnalyst((body) =>
      asksForLabels(body) ? labeled(body).replace('PRESENT', 'MAYBE') : undefined,
    );
    expect(await failure()).toBeInstanceOf(UserError);
  });
});

describe('a name', () => {
  const stopped = () =>
    expect(run({ price: { input: 1000, output: 1000 }, maxDollars: 0.1 })).rejects.toThrow(/budget/);

  it('stands for the same conversations, whatever file they are in', async () => {
    await run();
    const before = result();
    const { message } = await failure({}, fileOf(conversations(5)));
    expect(message).toContain('--name');
    expect(result()).toEqual(before);
    expect(server.requests).toHaveLength(4);
    expect(await run({}, fileOf(conversations().reverse()))).toBe(0);
    expect(await run({ name: 'other' }, fileOf(conversations(5)))).toBe(0);
    writeFileSync(join(home, 'library', 'report.json'), '{}');
    expect((await failure()).message).toContain('--name');
  });

  it("is taken before anything is asked, and not where a campaign's folder is, or what it spent", async () => {
    await stopped();
    expect((await failure({}, fileOf(conversations(5)))).message).toContain('--name');
    mkdirSync(join(home, 'shop', 'environments'), { recursive: true });
    const store = openFolderStore(join(home, 'artifacts'));
    await openLedger({ store, campaign: 'shop2', budget: {}, role: 'analyst' }).keep('key', {
      step: 'labels',
      reply: { text: 'x', finish: 'stop', usage: { promptTokens: 1, cachedTokens: 0, completionTokens: 1 } },
      question: { messages: [], seed: 1 },
    });
    for (const name of ['shop', 'shop2']) expect((await failure({ name })).message).toContain('--name');
    expect(server.requests).toHaveLength(1);
  });

  it('is kept from campaigns, also by one that was stopped before it had anything', async () => {
    await stopped();
    const fields = JSON.stringify({ name: 'library', ...shopParts, baseModel: { path: 'm' } });
    const file = fileOf([fields], 'c.yaml');
    await expect(runCampaign(file, { home })).rejects.toThrow('--name');
    await expect(startDetached(file, { home, temporalAddress: 'nowhere:1' })).rejects.toThrow('--name');
  });
});

it('leaves no analysis beside labels of another, where it is stopped while it writes', async () => {
  const file = fileOf(conversations());
  await run({}, file);
  const given = join(home, 'library', 'capabilities.yaml');
  rmSync(given);
  mkdirSync(join(given, 'in the way'), { recursive: true });
  await expect(run({ passes: 4 }, file)).rejects.toThrow();
  expect(existsSync(join(home, 'library', 'analysis.json'))).toBe(false);
  rmSync(given, { recursive: true });
  expect(await run({ passes: 4 }, file)).toBe(0);
  expect(result().selection.passes).toBe(4);
  expect(readdirSync(join(home, 'library')).toSorted()).toEqual([
    'analysis.html',
    'analysis.json',
    'capabilities.yaml',
    'conversations.json',
    'labels',
  ]);
  expect(readdirSync(join(home, 'library', 'labels'))).toHaveLength(4);
});

it('leaves out what no request can hold', async () => {
  const long = conversation({ id: 'long', words: 'word '.repeat(200) });
  const messages = [...long.messages, ...Array.from({ length: 60 }, () => long.messages.at(-1))];
  const lines = [...conversations(), { ...long, messages }];
  const config = fileOf(['{ contextTokens: 24000, maxTokens: 4000 }'], 'small.yaml');
  expect(await run({ config }, fileOf(lines))).toBe(0);
  expect(result().conversations).toMatchObject({ total: 8, failed: 4, passed: 4 });
  const two = [conversations()[0] as object, { ...long, messages }];
  const { evidence } = await failure({ config, name: 'two' }, fileOf(two));
  expect(evidence.join()).toContain('long');
});

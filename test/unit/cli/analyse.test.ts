/** `campaign analyse` through the real client: an endpoint of ours that answers by what the prompt holds. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../../src/store/open-store';
import { keysOf } from '../../../src/store/campaign-index';
import { readGivenFile } from '../../../src/analyst/given';
import { analyse, type AnalyseOptions } from '../../../src/cli/analyse/run';
import type { Analysis } from '../../../src/cli/analyse/result';
import { UserError } from '../../../src/cli/errors';
import { run as runCommand } from '../../../src/cli/run/command';
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
import { closedAfterwards } from '../../support/opened';
import { newFolder } from '../../support/temporary-folder';

let server: ChatServer;
let [home, said, printed] = ['', '', ''];
beforeEach(async () => {
  server = closedAfterwards(await startAnalyst());
  home = join(newFolder(), 'home');
  [said, printed] = ['', ''];
  jest.spyOn(process.stderr, 'write').mockImplementation((text) => Boolean((said += String(text))));
  jest.spyOn(console, 'log').mockImplementation((text) => void (printed += `${text}\n`));
});
afterEach(() => jest.restoreAllMocks());

const run = (options: Partial<AnalyseOptions> = {}, file = fileOf(conversations())) =>
  analyse([file], { home, url: server.url, model: 'reader', passes: 3, yes: true, ...options });

const failure = (...given: Parameters<typeof run>): Promise<UserError> =>
  run(...given).then(
    (code) => Promise.reject(new Error(`it ended with ${code}`)),
    (error: UserError) => error,
  );

const result = (name = 'library'): Analysis =>
  JSON.parse(readFileSync(join(home, name, 'analysis.json'), 'utf8')) as Analysis;
const reading = (name?: string) => result(name).reading!;
const selection = () => reading().selection;
const textOf = ({ sections }: Analysis) => sections.flatMap(({ statements }) => statements.map(({ text }) => text));
const html = () => readFileSync(join(home, 'library', 'analysis.html'), 'utf8');
const page = () => wordsOf(html());

describe('what comes out', () => {
  it('is the lacking capability, for each failure the step where it begins, and a file for campaigns', async () => {
    expect(await run()).toBe(0);
    const { conversations: counts, shown } = result();
    const { failures, causes } = reading();
    const { candidates, passes, failedPasses, faults } = selection();
    expect(counts).toMatchObject({ total: 8, failed: 4, passed: 4 });
    expect([passes, failedPasses]).toEqual([3, []]);
    expect(candidates[0]).toMatchObject({
      name: SKILL,
      selected: true,
      votes: 3,
      coverage: { value: 1, std: 0 },
      delta: { value: 1, std: 0 },
    });
    expect(candidates[1]).toMatchObject({ name: OTHER, selected: false, votes: 0 });
    const lacking = candidates[0]!.citations.filter(({ votes }) => votes === 'lacking in 3 of 3 passes');
    expect(lacking.map(({ rollout }) => rollout).toSorted()).toEqual(['f0', 'f1', 'f2', 'f3']);
    expect(candidates[1]!.citations.length).toBeGreaterThan(0);
    expect(failures.map(({ conversation: id, begins }) => [id, begins])).toMatchObject(
      ['f0', 'f1', 'f2', 'f3'].map((id) => [
        id,
        { of: 'agent', message: GUESS_AT, votes: 3, reason: 'the <i>number</i> is made up' },
      ]),
    );
    expect(failures[0]?.lacking).toEqual([
      expect.objectContaining({
        capability: SKILL,
        label: 'LACKING',
        lacking: 3,
        passes: 3,
        message: GUESS_AT,
        says: 'makes a number up ',
      }),
    ]);
    // Failed ones come first, without the policy.
    expect(shown[0]).toMatchObject({ conversation: 'f0', reward: 0 });
    expect(shown[0]?.messages.map(({ message, role }) => [message, role])).toEqual([
      [1, 'user'],
      [2, 'assistant'],
      [3, 'tool'],
      [4, 'assistant'],
    ]);
    expect(shown[0]?.messages[1]?.text).toBe('I GUESS your card is 7.\ncalls renew({"card":"7"})');
    // Half of the conversations fail by it; four of eight call for it and show it.
    expect(causes).toMatchObject([
      { capability: SKILL, explains: ['f0', 'f1', 'f2', 'f3'], worth: { value: 0.5, n: 8 }, arises: 8, shown: 4 },
    ]);
    expect(printed).toMatch(/Try first training: the agent does it in 4 of 8 conversations that call for it/);
    expect(printed).toMatch(/message 2: makes a number up: “I GUESS your card is 7/);
    expect(faults?.found).toMatchObject([
      { of: 'user', citations: [{ rollout: 'f0', outcome: 'failed', message: GUESS_AT }] },
    ]);
    // A campaign goes on with what was selected.
    const { capabilities } = await readGivenFile(join(home, 'library', 'capabilities.yaml'));
    expect(capabilities.map(({ name }) => name)).toEqual([SKILL]);
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
    const begins = new Map(reading().failures.map((one) => [one.conversation, one]));
    expect(begins.get('n')).toMatchObject({ lacking: [], begins: { of: 'agent', message: 2, votes: 3 } });
    expect(begins.get('u')).toMatchObject({ lacking: [], begins: { of: 'user', message: 3, reason: 'is in a hurry' } });
    expect(result().sections[0]?.statements.map((one) => one.conversations)).toEqual([
      ['f0', 'f1', 'f2', 'f3'],
      ['n'],
      ['u'],
    ]);
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
    expect(await run({ passes: 4, json: true })).toBe(0);
    expect(JSON.parse(printed)).toEqual(result());
    const { passes, failedPasses, candidates } = selection();
    expect([passes, failedPasses.length, candidates[0]?.votes, candidates[0]?.selected]).toEqual([4, 1, 3, false]);
  });
});

describe('failures alone', () => {
  it('have a beginning and causes, of which none is selected', async () => {
    await run({}, fileOf(conversations().filter((_, n) => n % 2 === 0)));
    const { causes, failures, selection: rule } = reading();
    expect(causes).toMatchObject([{ capability: SKILL, explains: ['f0', 'f1', 'f2', 'f3'] }]);
    expect(failures.map(({ begins, explainedBy }) => [begins?.message, explainedBy])).toEqual(
      Array(4).fill([GUESS_AT, [SKILL]]),
    );
    expect(rule.candidates.some((one) => one.selected)).toBe(false);
    expect(textOf(result()).join()).toContain(rule.reason);
    expect(existsSync(join(home, 'library', 'capabilities.yaml'))).toBe(false);
    expect(printed).not.toContain('kind: given');
  });
});

describe('without a language model', () => {
  const alone = (file: string, options: Partial<AnalyseOptions> = {}) => analyse([file], { home, ...options });

  it('compares failed and passed conversations, and attempts at one task', async () => {
    const attempts = [conversation({ id: 'a1', task: 't', guesses: true }), conversation({ id: 'a2', task: 't' })];
    expect(await alone(fileOf([...conversations(), ...attempts]))).toBe(0);
    const { differences, partings, reading: none, shown } = result();
    expect(none).toBeUndefined();
    expect(differences[0]).toMatchObject({
      what: 'calls no tool',
      failed: 0,
      passed: 5,
      share: { value: -1, high: expect.any(Number) },
    });
    expect(differences[1]?.what).toMatch(/calls renew.*gets an error from renew/);
    expect(differences.every(({ share: { low, value, high } }) => low <= value && value <= high)).toBe(true);
    expect(partings).toEqual([
      {
        ...{ task: 't', failed: 'a1', passed: 'a2', same: 0 },
        then: { failed: { call: 'renew({"card":"7"})', message: GUESS_AT } },
      },
    ]);
    expect(shown).toHaveLength(10);
    expect(server.requests).toEqual([]);
  });

  it('compares no property of a single conversation, and lists what all have where none passed', async () => {
    const tools = (name: string) => [{ id: 'c', function: { name, arguments: '{}' } }];
    const line = (name: string, passed: boolean) => {
      return { passed, messages: [{ role: 'assistant', content: '', tool_calls: tools(name) }] };
    };
    await alone(fileOf([line('look', true), line('look', true), line('renew', false), line('close', false)]));
    expect(result().differences.map(({ what }) => what)).toEqual(['calls look']);
    await alone(fileOf([line('look', false), line('look', false)]));
    expect(result().differences[0]).toMatchObject({ what: expect.stringContaining('calls look'), failed: 2 });
  });

  it('takes calls for equal whose arguments stand in another order', async () => {
    const line = (passed: boolean, ...given: string[]) => ({
      ...{ task: 't', passed },
      messages: given.map((text) => ({
        ...{ role: 'assistant', content: '', tool_calls: [{ function: { name: 'look', arguments: text } }] },
      })),
    });
    await alone(fileOf([line(true, '{"a":1,"b":2}', '{"c":3}'), line(false, '{"b":2,"a":1}')]));
    expect(result().partings[0]?.same).toBe(1);
  });

  it('says the same on the terminal and the page', async () => {
    await alone(fileOf(conversations()));
    const flat = (text: string) => text.replace(/\s+/g, ' ');
    for (const text of textOf(result()))
      expect([flat(printed), page()]).toEqual(Array(2).fill(expect.stringContaining(text)));
  });
});

describe('before anything is asked', () => {
  afterEach(() => {
    expect(server.requests).toEqual([]);
    expect(existsSync(join(home, 'library'))).toBe(false);
  });

  it('bad lines stop it', async () => {
    const { message, evidence } = await failure({}, fileOf([...conversations(), '{', { messages: [] }]));
    expect(message).toMatch(/library\.jsonl:9 /);
    expect(evidence).toEqual([expect.stringMatching(/library\.jsonl:10 messages/)]);
  });

  const half = (rest: number) => fileOf(conversations().filter((_, n) => n % 2 === rest));
  it.each<[Partial<AnalyseOptions> & { file?: string }, string]>([
    [{ file: half(1) }, 'failed'],
    [{ url: undefined } as never, '--url'],
    [{ model: undefined } as never, '--model'],
    [{ url: 'nowhere' }, 'url'],
    [{ apiKeyEnv: 'NO_SUCH_KEY' }, '--api-key-env'],
    [{ maxDollars: 1 }, '--max-dollars'],
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

it('takes fields from a campaign file, with the flags over them', async () => {
  const fields = `{ url: '${server.url}', model: other, temperature: 0.5, parameters: { top_k: 3 } }`;
  const config = fileOf([`{ name: x, analyst: ${fields} }`], 'campaign.yaml');
  await run({ config, url: undefined } as never);
  expect(server.requests[0]?.body).toMatchObject({ model: 'reader', temperature: 0.5, top_k: 3 });
});

describe('going on', () => {
  it('asks nothing twice', async () => {
    const file = fileOf(conversations());
    await run({}, file);
    expect(server.requests).toHaveLength(4);
    await run({}, file);
    expect(server.requests).toHaveLength(4);
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
    expect(result().reading).toBeUndefined();
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
    const { passes, failedPasses, reason } = selection();
    expect(passes).toBe(3);
    expect(failedPasses).toHaveLength(1);
    expect(reason).toBeDefined();
    expect(await run({ ...options, maxDollars: 10 }, file)).toBe(0);
    expect([selection().failedPasses, server.requests.length]).toEqual([[], 4]);
  });
});

describe('a name', () => {
  const stopped = () =>
    expect(run({ price: { input: 1000, output: 1000 }, maxDollars: 0.1 })).rejects.toThrow(/budget/);

  it('keeps what was paid for: other files, or no model, need another name', async () => {
    const file = fileOf(conversations());
    await run({}, file);
    const paid = reading();
    const other = fileOf(conversations(), 'other.jsonl');
    expect(await failure({ name: 'library' }, other)).toMatchObject({ code: 'name_taken', field: '--name' });
    await expect(analyse([file], { home })).rejects.toMatchObject({ code: 'name_taken' });
    expect(reading()).toEqual(paid);
  });

  it('is not that of a campaign', async () => {
    mkdirSync(join(home, 'shop', 'environments'), { recursive: true });
    expect((await failure({ name: 'shop' })).message).toContain('--name');
  });

  it('is kept from campaigns, also by one that was stopped before it had anything', async () => {
    await stopped();
    const fields = JSON.stringify({ name: 'library', ...shopParts, baseModel: { path: 'm' } });
    const file = fileOf([fields], 'c.yaml');
    await expect(runCommand(file, { home })).rejects.toThrow('--name');
    await expect(startDetached(file, { home, temporalAddress: 'nowhere:1' })).rejects.toThrow('--name');
  });
});

it('refuses what no request can hold, by its task', async () => {
  const long = conversation({ id: 'long', words: 'word '.repeat(200) });
  const messages = [...long.messages, ...Array.from({ length: 60 }, () => long.messages.at(-1))];
  const config = fileOf(['{ contextTokens: 24000, maxTokens: 4000 }'], 'small.yaml');
  const { message } = await failure({ config }, fileOf([...conversations(), { ...long, messages }]));
  expect(message).toContain('task long');
});

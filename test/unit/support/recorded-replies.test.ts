/** The endpoint of recorded replies through the real OpenAI client, and the sets that ship with the project. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import OpenAI from 'openai';
import { startRecordedReplies, type RecordedReplies } from '../../support/recorded-replies';
import { openRecordedSet, recordedFolder, shortHash, WRITTEN_BY_US } from '../../support/recorded-set';

const messages = [
  { role: 'system' as const, content: 'You count.' },
  { role: 'user' as const, content: 'What is\n  1 + 1?' },
];
const reply = `It is 2.\n\n${'And so on. '.repeat(200)}`;

let folder: string;
let server: RecordedReplies | undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'recorded-'));
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(folder, { recursive: true, force: true });
});

async function start(record?: string): Promise<OpenAI> {
  server = await startRecordedReplies({ set: join(folder, 'set'), record });
  return new OpenAI({ baseURL: server.url, apiKey: 'none', maxRetries: 0 });
}

async function streamed(client: OpenAI, seed = 7) {
  let [text, finish, total] = ['', '', 0];
  const request = { model: 'any', messages, seed, stream: true, stream_options: { include_usage: true } } as const;
  for await (const { choices, usage } of await client.chat.completions.create(request)) {
    text += choices[0]?.delta.content ?? '';
    finish = choices[0]?.finish_reason ?? finish;
    total = usage?.total_tokens ?? total;
  }
  return { text, finish, total };
}

test('a recorded reply is served whole, streamed or not, whatever the model and its sampling', async () => {
  openRecordedSet(join(folder, 'set')).add({ messages, seed: 7 }, reply);
  const client = await start();
  expect(await streamed(client)).toEqual({ text: reply, finish: 'stop', total: expect.any(Number) });
  const plain = await client.chat.completions.create({ model: 'other', temperature: 0.3, messages, seed: 7 });
  expect(plain.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: reply } });
  expect(plain.usage).toMatchObject({ completion_tokens: Math.ceil(reply.length / 4) });
  const hash = shortHash({ messages, seed: 7 });
  expect(server!.requests).toEqual([
    { hash, found: true },
    { hash, found: true },
  ]);
});

test('another seed or another word is another question, and one without a reply fails with how to record it', async () => {
  openRecordedSet(join(folder, 'set')).add({ messages, seed: 7 }, reply);
  const client = await start();
  await expect(streamed(client, 8)).rejects.toMatchObject({ status: 404, message: expect.stringContaining('RECORD') });
  const changed = [{ role: 'user' as const, content: 'What is 1 + 2?' }];
  await expect(client.chat.completions.create({ model: 'any', messages: changed, seed: 7 })).rejects.toThrow(
    `no recorded reply to ${shortHash({ messages: changed, seed: 7 })}`,
  );
  expect(server!.requests.map(({ found }) => found)).toEqual([false, false]);
});

test('in recording mode a question waits for its answer, which becomes part of the set', async () => {
  const record = join(folder, 'prompts');
  const client = await start(record);
  const asked = [streamed(client), streamed(client)];
  const hash = shortHash({ messages, seed: 7 });
  while (!existsSync(join(record, `${hash}.prompt.txt`))) await sleep(20);
  expect(readFileSync(join(record, `${hash}.prompt.txt`), 'utf8')).toBe(
    '--- system\nYou count.\n\n--- user\nWhat is\n  1 + 1?\n',
  );
  writeFileSync(join(record, 'reply'), reply);
  renameSync(join(record, 'reply'), join(record, `${hash}.reply.md`));
  for (const { text } of await Promise.all(asked)) expect(text).toBe(reply);
  expect(readdirSync(record)).toEqual([]);
  const set = openRecordedSet(join(folder, 'set'));
  expect(set.find({ messages, seed: 7 })).toBe(reply);
  expect(set.index()).toEqual({
    [hash]: {
      step: 'What is 1 + 1?',
      bytes: Buffer.byteLength(reply),
      prompt: expect.stringMatching(`^${hash}`),
      sampled: expect.stringContaining('this prompt only'),
    },
  });
});

test('what is no chat completion is refused', async () => {
  await start();
  const sent = await fetch(`${server!.url}/chat/completions`, { method: 'POST', body: '{"messages": 1' });
  expect([sent.status, await sent.text()]).toEqual([400, expect.stringContaining('not a chat completion')]);
});

/** Folders with an index, below test/recorded. */
const shipped = readdirSync(recordedFolder, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('index.json'))
  .map((path) => path.replace(/\/index\.json$/, ''));

test('the sets that ship hold what their index says', () => {
  for (const name of shipped) {
    const set = openRecordedSet(name);
    const index = set.index();
    const replies = readdirSync(set.folder).filter((file) => file.endsWith('.md'));
    expect(replies.sort()).toEqual(Object.keys(index).map((hash) => `${hash}.md`));
    for (const [hash, { bytes, prompt, sampled }] of Object.entries(index)) {
      expect(prompt.slice(0, 16)).toBe(hash);
      expect(readFileSync(join(set.folder, `${hash}.md`)).length).toBe(bytes);
      expect(sampled === 'written by us').toBe(name.startsWith(WRITTEN_BY_US));
    }
  }
});

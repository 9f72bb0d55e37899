/** The endpoint of recorded replies through the client of language models, and the sets that ship with the project. */
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { languageModelSchema } from '../../../src/domain/endpoints';
import { openLanguageModel, type ChatMessage } from '../../../src/language-model/model';
import { askingBy, memoryLedger } from '../../support/memory-ledger';
import { startRecordedReplies, type RecordedReplies } from '../../support/recorded-replies';
import { openRecordedSet, recordedFolder, shortHash } from '../../support/recorded-set';
import { eachTemporaryFolder } from '../../support/temporary-folder';

const messages = [
  { role: 'system' as const, content: 'You count.' },
  { role: 'user' as const, content: 'What is\n  1 + 1?' },
];
const reply = `It is 2.\n\n${'And so on. '.repeat(200)}`;

let folder: string;
let server: RecordedReplies | undefined;
eachTemporaryFolder((made) => (folder = made));
afterEach(async () => {
  await server?.close();
  server = undefined;
});

type Ask = (seed?: number, asked?: readonly ChatMessage[], parameters?: object) => Promise<string>;

async function start(record?: string): Promise<Ask> {
  server = await startRecordedReplies({ set: join(folder, 'set'), record });
  const { url } = server;
  return async (seed = 7, asked = messages, parameters = {}) => {
    const model = openLanguageModel('analyst', languageModelSchema.parse({ url, model: 'any', parameters }));
    const { text, finish, usage } = await model.ask({ messages: asked, seed }, askingBy(memoryLedger()));
    expect([finish, usage.completionTokens]).toEqual(['stop', Math.ceil(text.length / 4)]);
    return text;
  };
}

test('a recorded reply is served whole, streamed or not; another seed or word is another question, which fails with how to record it', async () => {
  openRecordedSet(join(folder, 'set')).add({ messages, seed: 7 }, reply);
  const ask = await start();
  expect(await ask()).toBe(reply);
  // Whatever the model and its sampling.
  expect(await ask(7, messages, { model: 'other', temperature: 0.3, stream: false, stream_options: null })).toBe(reply);
  const refused = { type: 'LanguageModelRejected', message: expect.stringMatching(/404 .*RECORD/) };
  await expect(ask(8)).rejects.toMatchObject(refused);
  const changed = [{ role: 'user' as const, content: 'What is 1 + 2?' }];
  await expect(ask(7, changed)).rejects.toThrow(`no recorded reply to ${shortHash({ messages: changed, seed: 7 })}`);
  expect(server!.requests.map(({ found }) => found)).toEqual([true, true, false, false]);
  expect(server!.requests[0]!.hash).toBe(shortHash({ messages, seed: 7 }));
});

test('in recording mode a question waits for its answer, which becomes part of the set', async () => {
  const record = join(folder, 'prompts');
  const ask = await start(record);
  const asked = [ask(), ask()];
  const hash = shortHash({ messages, seed: 7 });
  while (!existsSync(join(record, `${hash}.prompt.txt`))) await sleep(20);
  expect(readFileSync(join(record, `${hash}.prompt.txt`), 'utf8')).toBe(
    '--- system\nYou count.\n\n--- user\nWhat is\n  1 + 1?\n',
  );
  writeFileSync(join(record, 'reply'), reply);
  renameSync(join(record, 'reply'), join(record, `${hash}.reply.md`));
  expect(await Promise.all(asked)).toEqual([reply, reply]);
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
    for (const [hash, { bytes, prompt }] of Object.entries(index)) {
      expect(prompt.slice(0, 16)).toBe(hash);
      expect(readFileSync(join(set.folder, `${hash}.md`)).length).toBe(bytes);
    }
  }
});

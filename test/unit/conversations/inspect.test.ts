/** Logs of Inspect, as JSON and as .eval. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { crc32, deflateRawSync } from 'node:zlib';
import { ZipFile } from 'yazl';
import { readConversations } from '../../../src/conversations/read';
import { temporaryFolder } from '../../support/temporary-folder';

const root = temporaryFolder();

const sample = (id: string | number, value: unknown, more: object = {}) => ({
  id,
  epoch: 1,
  messages: [
    { id: 'm1', role: 'system', content: 'rules', source: 'input' },
    { role: 'user', content: [{ type: 'text', text: 'look it up' }] },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', reasoning: 'hm' },
        { type: 'text', text: 'attachment://abc' },
      ],
      tool_calls: [{ id: 'c', function: 'look', arguments: { at: 1 }, type: 'function' }],
    },
    { role: 'tool', content: 'found', tool_call_id: 'c', function: 'look' },
  ],
  attachments: { abc: 'a long text' },
  scores: { match: { value } },
  ...more,
});

const folder = () => mkdtempSync(join(root, 'inspect-'));

function jsonLog(...samples: object[]): string {
  const file = join(folder(), 'log.json');
  writeFileSync(file, JSON.stringify({ version: 2, eval: { task: 'lookup' }, samples }));
  return file;
}

const readLog = (file: string, scorer?: string) => readConversations({ files: [file], scorer });

it('reads samples with their epochs, calls and long texts', async () => {
  const { conversations } = await readLog(jsonLog(sample(3, 'C'), sample(3, 'I', { epoch: 2 })));
  expect(conversations.map(({ id, task, reward }) => `${id} ${task} ${reward}`)).toEqual(['3-1 3 1', '3-2 3 0']);
  expect(conversations[0]?.messages).toEqual([
    { role: 'system', content: 'rules' },
    { role: 'user', content: 'look it up' },
    { role: 'assistant', content: 'a long text', toolCalls: [{ id: 'c', name: 'look', arguments: { at: 1 } }] },
    { role: 'tool', toolCallId: 'c', content: 'found' },
  ]);
});

it('takes the score for the reward', async () => {
  const scores = ['C', 'I', 'P', 'N', true, false, 0.25];
  const { conversations } = await readLog(jsonLog(...scores.map((score, n) => sample(n, score))));
  expect(conversations.map(({ reward }) => reward)).toEqual([1, 0, 0.5, 0, 1, 0, 0.25]);
});

it('leaves out what broke or was not scored, and says so', async () => {
  const file = jsonLog(
    sample('a', 'C'),
    sample('b', 'C', { error: { message: 'sandbox died' } }),
    sample('c', 'C', { scores: null }),
    sample('d', 'not scored'),
  );
  // As Python writes it.
  writeFileSync(file, readFileSync(file, 'utf8').replace('"not scored"', 'NaN'));
  const { conversations, notes } = await readLog(file);
  expect(conversations.map(({ id }) => id)).toEqual(['a-1']);
  expect(notes).toEqual([
    `${file}: left out 1 of 4 samples: it ended with an error`,
    `${file}: left out 2 of 4 samples: it has no score`,
    `${file}: content of type reasoning is left out (1)`,
  ]);
});

it('asks which of several scorers counts, and names a score that is no outcome', async () => {
  const file = jsonLog(sample('a', 'C', { scores: { match: { value: 'C' }, judge: { value: 'I' } } }));
  await expect(readLog(file)).rejects.toThrow(/samples\[0\] \(id a\) has scores of match, judge; .*--scorer NAME/);
  await expect(readLog(file, 'jugde')).rejects.toThrow('has no score of jugde; --scorer may be match, judge');
  expect((await readLog(file, 'judge')).conversations[0]?.reward).toBe(0);
  await expect(readLog(jsonLog(sample('a', { f1: 1 })))).rejects.toThrow(
    /scores\.match\.value is {"f1":1}; it must be "C", "I"/,
  );
});

describe('.eval', () => {
  const zipped = async (files: Record<string, string | Buffer>, compress = true): Promise<Buffer> => {
    const zip = new ZipFile();
    for (const [name, text] of Object.entries(files)) zip.addBuffer(Buffer.from(text as string), name, { compress });
    zip.end();
    return buffer(zip.outputStream);
  };
  const put = (body: Uint8Array): string => {
    const file = join(folder(), 'log.eval');
    writeFileSync(file, body);
    return file;
  };
  const evalLog = async (files: Record<string, string>) => put(await zipped(files));

  const fixture = (name: string) => join(__dirname, '../../fixtures/inspect', name);

  it('is read whether it is deflated or, as since April 2026, compressed by Zstandard', async () => {
    const file = fixture('zstd.eval');
    const { conversations, notes } = await readLog(file);
    expect(conversations.map(({ id, reward, messages }) => [id, reward, messages.length])).toEqual([
      ['a-1', 1, 5],
      ['b/8-1', 0, 4],
    ]);
    expect(conversations[0]?.messages.at(-1)).toEqual({ role: 'assistant', content: 'It is yours until June.' });
    // It is so long that Inspect keeps it apart.
    expect(conversations[1]?.messages[0]?.content).toMatch(/^Renew 8\. (It is said to be late\. ){60}$/);
    expect(notes).toEqual([`${file}: left out 1 of 3 samples: it ended with an error`]);
    expect((await readLog(fixture('deflate.eval'))).conversations).toEqual(conversations);
  });

  /** A zip of one entry, of which the directory says something else. `body`: as it is compressed. */
  async function claimed(body: Uint8Array, claims: { method: number; size: number; crc?: number }): Promise<string> {
    const zip = await zipped({ 'samples/a.json': Buffer.from(body) }, false);
    const directory = zip.indexOf('PK\u0001\u0002');
    zip.writeUInt16LE(claims.method, directory + 10);
    if (claims.crc !== undefined) zip.writeUInt32LE(claims.crc, directory + 16);
    zip.writeUInt32LE(claims.size, directory + 24);
    return put(zip);
  }
  /** A Zstandard frame with a window of this exponent, and a block of one byte many times. */
  const frame = (exponent: number, times: number) =>
    Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, (exponent - 10) << 3, (times << 3) | 3, times >> 5, times >> 13, 0x20]);

  it('is read of several frames, of which some are to be skipped', async () => {
    const text = Buffer.from(JSON.stringify(sample('a', 'C')));
    const raw = (part: Buffer) =>
      Buffer.concat([
        Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3, (part.length << 3) | 1, part.length >> 5, part.length >> 13]),
        part,
      ]);
    const skipped = Buffer.from([0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
    const body = Buffer.concat([raw(text.subarray(0, 99)), skipped, raw(text.subarray(99)), skipped]);
    const { conversations } = await readLog(await claimed(body, { method: 93, size: text.length, crc: crc32(text) }));
    expect(conversations.map(({ id }) => id)).toEqual(['a-1']);
  });

  it.each([
    ['longer than it says', () => claimed(frame(17, 100_000), { method: 93, size: 10 }), /longer than it says/],
    ['shorter', () => claimed(frame(17, 100), { method: 93, size: 1000 }), /samples\/a\.json is damaged/],
    ['another', () => claimed(frame(17, 100), { method: 93, size: 100, crc: 7 }), /samples\/a\.json is damaged/],
    ['a window of 2 GiB', () => claimed(frame(31, 100), { method: 93, size: 100 }), /window is 2147483648 bytes/],
    ['cut off', () => claimed(frame(17, 100).subarray(0, 8), { method: 93, size: 100 }), /can't be read/],
    ['no Zstandard', () => claimed(Buffer.from('{}{}{}'), { method: 93, size: 6 }), /no Zstandard/],
    [
      'longer deflated',
      () => claimed(deflateRawSync(Buffer.alloc(1e6)), { method: 8, size: 10 }),
      /larger than 10 bytes/,
    ],
    ['an unknown method', () => claimed(Buffer.from('{}'), { method: 12, size: 2 }), /method 12, which is not known/],
    ['beyond any text', () => claimed(frame(17, 100), { method: 93, size: 2 ** 31 }), /would be 2147483648 bytes/],
  ])('refuses an entry that is %s', async (_what, made, problem) => {
    await expect(readLog(await made())).rejects.toThrow(problem);
  });

  it('takes of two entries of one name the later, and none that its directory does not name', async () => {
    const [old, edited] = [sample('a', 'I'), sample('a', 'C')].map((one) => JSON.stringify(one));
    const zip = new ZipFile();
    for (const text of [old, edited]) zip.addBuffer(Buffer.from(text!), 'samples/a_epoch_1.json');
    zip.end();
    const { conversations } = await readLog(put(await buffer(zip.outputStream)));
    expect(conversations.map(({ reward }) => reward)).toEqual([1]);
  });

  it('refuses what is nested so deep that it could not be written again', async () => {
    const deep = `${'['.repeat(300)}${']'.repeat(300)}`;
    const text = JSON.stringify(sample('a', 'C')).replace('"at":1', `"at":${deep}`);
    await expect(readLog(await evalLog({ 'samples/a.json': text }))).rejects.toThrow(
      /samples\[0\] messages is nested deeper than 200; it must be a list nested no deeper than 200/,
    );
  });

  it('is read as the same log in JSON', async () => {
    const samples = [sample('a', 'C'), sample('b', 'I')];
    const entries = samples.map((one) => [`samples/${one.id}_epoch_1.json`, JSON.stringify(one)] as const);
    const log = { 'header.json': '{}', ...Object.fromEntries(entries), 'summaries.json': '[]' };
    const { conversations } = await readLog(await evalLog(log));
    expect(conversations).toEqual((await readLog(jsonLog(...samples))).conversations);
  });

  it.each<[string, () => Promise<string> | string, RegExp]>([
    ['none', () => evalLog({ 'x.txt': 'x' }), /a zip without samples\/\*\.json/],
    [
      'of damaged JSON',
      () => evalLog({ 'samples/a.json': '{' }),
      /samples\/a\.json in it is no JSON.*inspect log convert/,
    ],
    ['cut', () => put(Buffer.from('PK\u0003\u0004 and no more')), /log\.eval: can't be read .*inspect log convert/],
  ])('says what to do with a zip that is %s', async (_, made, problem) => {
    await expect(readLog(await made())).rejects.toThrow(problem);
  });
});

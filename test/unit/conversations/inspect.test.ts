/** Logs of Inspect, as JSON and as .eval. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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
    `${file}: content of type reasoning is left out (1)`,
    `${file}: a sample that ended with an error is left out (1)`,
    `${file}: a sample without a score is left out (2)`,
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
    expect(notes).toEqual([`${file}: a sample that ended with an error is left out (1)`]);
    expect((await readLog(fixture('deflate.eval'))).conversations).toEqual(conversations);
  });

  it('takes of two entries with one name the later', async () => {
    const { conversations } = await readLog(fixture('edited.eval'));
    expect(conversations.map(({ reward }) => reward)).toEqual([0, 0]);
  });

  it.each([
    ['cut', readFileSync(fixture('zstd.eval')).subarray(0, 2000), /can't be read .*inspect log convert --to json/],
    ['damaged', damaged(readFileSync(fixture('zstd.eval'))), /can't be read .*inspect log convert --to json/],
  ])('says what to do with one that is %s', async (_, body, problem) => {
    const file = join(folder(), 'log.eval');
    writeFileSync(file, body);
    await expect(readLog(file)).rejects.toThrow(problem);
  });
});

/** Puts zeros into the first sample. */
function damaged(body: Buffer): Buffer {
  const at = body.indexOf('samples/a_epoch_1.json') + 60;
  return Buffer.concat([body.subarray(0, at), Buffer.alloc(50), body.subarray(at + 50)]);
}

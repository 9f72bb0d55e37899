/** Logs of Inspect, as JSON and as .eval. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { strToU8, zipSync } from 'fflate';
import { readConversations } from '../../../src/conversations/read';

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

const folder = () => mkdtempSync(join(tmpdir(), 'inspect-'));

function jsonLog(...samples: object[]): string {
  const file = join(folder(), 'log.json');
  writeFileSync(file, JSON.stringify({ version: 2, eval: { task: 'lookup' }, samples }));
  return file;
}

const readLog = (file: string, scorer?: string) => readConversations({ files: [file], scorer });

it('reads samples with their epochs, calls and long texts', async () => {
  const { conversations } = await readLog(jsonLog(sample(3, 'C'), sample(3, 'I', { epoch: 2 })));
  expect(conversations).toEqual([
    expect.objectContaining({ id: '3-1', task: '3', reward: 1 }),
    expect.objectContaining({ id: '3-2', task: '3', reward: 0 }),
  ]);
  expect(conversations[0]?.messages).toEqual([
    { role: 'system', content: 'rules' },
    { role: 'user', content: 'look it up' },
    {
      role: 'assistant',
      content: 'a long text',
      toolCalls: [{ id: 'c', name: 'look', arguments: { at: 1 } }],
    },
    { role: 'tool', toolCallId: 'c', content: 'found' },
  ]);
});

it.each([
  ['C', 1],
  ['I', 0],
  ['P', 0.5],
  ['N', 0],
  [true, 1],
  [false, 0],
  [0.25, 0.25],
])('takes the score %p for the reward %p', async (value, reward) => {
  const { conversations } = await readLog(jsonLog(sample('a', value)));
  expect(conversations[0]?.reward).toBe(reward);
});

it('leaves out what broke or was not scored, and says so', async () => {
  const file = jsonLog(
    sample('a', 'C'),
    sample('b', 'C', { error: { message: 'sandbox died' } }),
    sample('c', 'C', { scores: null }),
  );
  const { conversations, notes } = await readLog(file);
  expect(conversations.map(({ id }) => id)).toEqual(['a-1']);
  expect(notes).toEqual([
    `${file}: left out 1 of 3 samples: it ended with an error`,
    `${file}: left out 1 of 3 samples: it has no score`,
    `${file}: content of type reasoning is left out (1)`,
  ]);
});

it('asks which of several scorers counts', async () => {
  const file = jsonLog(sample('a', 'C', { scores: { match: { value: 'C' }, judge: { value: 'I' } } }));
  await expect(readLog(file)).rejects.toThrow(/samples\[0\] \(id a\) has scores of match, judge; .*--scorer NAME/);
  await expect(readLog(file, 'jugde')).rejects.toThrow('has no score of jugde; --scorer may be match, judge');
  expect((await readLog(file, 'judge')).conversations[0]?.reward).toBe(0);
});

it('names a score that is no outcome', async () => {
  await expect(readLog(jsonLog(sample('a', { f1: 1 })))).rejects.toThrow(
    /scores\.match\.value is {"f1":1}; it must be "C", "I"/,
  );
});

describe('.eval', () => {
  const evalLog = (files: Record<string, string>): string => {
    const file = join(folder(), 'log.eval');
    writeFileSync(
      file,
      zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, strToU8(text)]))),
    );
    return file;
  };

  it('is read as the same log in JSON', async () => {
    const samples = [sample('a', 'C'), sample('b', 'I')];
    const zipped = evalLog({
      'header.json': '{}',
      'samples/a_epoch_1.json': JSON.stringify(samples[0]),
      'samples/b_epoch_1.json': JSON.stringify(samples[1]),
      'summaries.json': '[]',
    });
    expect((await readLog(zipped)).conversations).toEqual((await readLog(jsonLog(...samples))).conversations);
  });

  it('says what to do with a zip that is none, or is damaged', async () => {
    await expect(readLog(evalLog({ 'x.txt': 'x' }))).rejects.toThrow(/a zip without samples\/\*\.json/);
    await expect(readLog(evalLog({ 'samples/a.json': '{' }))).rejects.toThrow(
      /samples\/a\.json in it is no JSON; .*inspect log convert/,
    );
    const cut = join(folder(), 'cut.eval');
    writeFileSync(cut, 'PK\u0003\u0004 and no more');
    await expect(readLog(cut)).rejects.toThrow(/cut\.eval: can't be unzipped .*inspect log convert/);
  });
});

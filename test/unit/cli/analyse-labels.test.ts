/** `campaign labels`: labels by people, checked and held against the passes. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { compareLabels, importLabels } from '../../../src/cli/analyse/labels';
import type { Comparison } from '../../../src/cli/analyse/people';
import { analyse } from '../../../src/cli/analyse/run';
import type { UserError } from '../../../src/cli/errors';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { lackingIn, majorityOf } from '../../../src/domain/selection';
import { completeReport } from '../../../src/report/render';
import { conversations, fileOf, OTHER, SKILL, startAnalyst } from '../../support/analyse-endpoint';
import { whilePrinting } from '../../support/campaign-command';
import { reportFixture } from '../../support/report-fixture';
import { newFolder } from '../../support/temporary-folder';

const home = join(newFolder(), 'home');
const page = () => readFileSync(join(home, 'library', 'analysis.html'), 'utf8');

beforeAll(async () => {
  const server = await startAnalyst();
  const file = fileOf(conversations());
  const asked = { home, url: server.url, model: 'reader', passes: 3, yes: true };
  await whilePrinting(() => analyse([file], asked));
  await server.close();
});

/** What is said of a file of these lines. */
const problems = (...lines: string[]): Promise<string[]> =>
  importLabels(fileOf(lines, 'people.csv'), { home }).then(
    () => [],
    ({ message, evidence }: UserError) => [message, ...evidence].map((line) => line.replace(/^\S*people\.csv/, 'FILE')),
  );
const compared = async (lines: (string | object)[]) =>
  JSON.parse(await compareLabels(fileOf(lines, 'people.csv'), { home, json: true })) as Comparison;

const CSV = [
  'conversation,capability,label,message',
  `f0,${SKILL},LACKING,2`,
  `f1,${SKILL},lacking,3`,
  `"f2",${SKILL},PRESENT,`,
  `p0,${SKILL},PRESENT,`,
  `p1,${OTHER},NA,`,
];

it('compares by capability: agreement, confusion, steps', async () => {
  const { rows, labels } = await compared(CSV);
  expect(labels).toBe(5);
  expect(rows.map(({ capability, compared }) => [capability, compared])).toEqual([
    [SKILL, 4],
    [OTHER, 1],
    ['all', 5],
  ]);
  // Passes: LACKING, LACKING, LACKING, PRESENT. Expected agreement (2 * 3 + 2 * 1) / 16.
  expect(rows[0]).toMatchObject({
    observed: 0.75,
    kappa: expect.closeTo((0.75 - 0.5) / 0.5, 12),
    confusion: {
      LACKING: { LACKING: 2, PRESENT: 0, NA: 0 },
      PRESENT: { LACKING: 1, PRESENT: 1, NA: 0 },
      NA: { LACKING: 0, PRESENT: 0, NA: 0 },
    },
    steps: { compared: 2, same: 1, nextTo: 2 },
  });
  // One label by each, the same: there is nothing to judge by.
  expect(rows[1]).not.toHaveProperty('kappa');
});

it('keeps what was imported, for compare and the page', async () => {
  await expect(compareLabels(undefined, { home })).rejects.toThrow('no labels by people are kept for library');
  const before = await compareLabels(fileOf(CSV, 'people.csv'), { home });
  expect(page()).not.toContain('Labels by people');
  expect(await importLabels(fileOf(CSV, 'people.csv'), { home })).toMatch(/^5 labels by people kept: /);
  expect(await compareLabels(undefined, { home })).toBe(before);
  expect(before).toMatch(new RegExp(`^${SKILL} +4 +75% +0\\.50 +\\S+ +1/2 +2/2$`, 'm'));
  expect(page()).toContain('Labels by people');
});

it('reads JSON lines, and CSV with semicolons, as the same', async () => {
  const lines = CSV.slice(1).map((line) => {
    const [conversation, capability, label, message] = line.replaceAll('"', '').split(',');
    return { conversation, capability, label, ...(message && { message: Number(message) }) };
  });
  const csv = await compared(CSV);
  for (const same of [lines, CSV.map((line) => line.replaceAll(',', ';'))]) expect(await compared(same)).toEqual(csv);
});

it('compares marks of where a failure begins, alone or among labels', async () => {
  // The passes say message 2.
  const marks = ['f0,,,2', 'f1,,,3', 'f2,,,4', 'f3,,,0'];
  const begins = { compared: 4, same: 0.25, within1: 0.5, within2: 1 };
  const mixed = await compared([...CSV, ...marks]);
  expect(mixed.begins).toEqual(begins);
  expect(mixed.rows).toEqual((await compared(CSV)).rows);
  expect(await compared(CSV)).not.toHaveProperty('begins');
  const json = [2, 3, 4, 0].map((message, n) => ({ conversation: `f${n}`, message }));
  expect(await compared(json)).toMatchObject({ rows: [], begins });
  const alone = ['conversation,message', ...marks.map((line) => line.replace(',,', ''))];
  expect(await importLabels(fileOf(alone, 'people.csv'), { home })).toMatch(/^4 labels by people kept: /);
  const line = 'the same message in 25% of 4 failures, within 1 in 50%, within 2 in 100%';
  expect(await compareLabels(undefined, { home })).toContain(line);
  expect(page()).toContain(line);
});

it('names every bad line', async () => {
  expect(
    await problems(
      CSV[0]!,
      `f9,${SKILL},LACKING,`,
      'f0,ask_for_missing_number,LACKING,',
      `f0,${SKILL},MAYBE,`,
      `f0,${SKILL},LACKING,two`,
      `f3,${SKILL},LACKING,`,
      `f3,${SKILL},PRESENT,`,
      ...['p0,,,2', 'f0,,,', 'f1,,,2', 'f1,,,3', 'f2,,LACKING,2'],
    ),
  ).toEqual([
    expect.stringMatching(/^FILE:2 conversation is "f9", which no pass labels for \w+; did you mean "f0"\?$/),
    `FILE:3 capability is "ask_for_missing_number"; did you mean "${SKILL}"?`,
    'FILE:4 label is "MAYBE"; it must be one of LACKING, PRESENT, NA',
    'FILE:5 message is "two"; it must be a message\'s number, or be left out; numbers count from 0',
    `FILE:7 labels f3 for ${SKILL} again, after line 6; leave one of them out`,
    expect.stringMatching(/^FILE:8 conversation is "p0", of which no pass says where it begins to fail; /),
    'FILE:9 message is ""; it must be the number of the message where the failure begins; numbers count from 0',
    'FILE:11 marks where f1 begins to fail again, after line 10; leave one of them out',
    expect.stringMatching(/^FILE:12 capability is ""; /),
  ]);
  expect(await problems('conversation,label', 'f0,NA')).toEqual([
    'FILE:1 has no column capability; begin with a line such as conversation,capability,label,message',
  ]);
});

it('needs passes', async () => {
  await expect(importLabels(fileOf(CSV), { home: '/nowhere' })).rejects.toThrow(
    'no analysis in /nowhere; make one with',
  );
  await expect(importLabels(fileOf(CSV), { home, name: 'other' })).rejects.toThrow(/other/);
  expect(existsSync(join(home, 'other'))).toBe(false);
});

it('compares with the passes of a campaign, whose rollouts it knows by the beginning of their keys', async () => {
  const store = openFolderStore(join(home, 'artifacts'));
  const [failed, passed] = ['a', 'b'].map((letter) => letter.repeat(64)) as [string, string];
  const lists = { present_failed: [], na_failed: [], lacking_passed: [], na_passed: [] };
  const labels = { [SKILL]: { ...lists, lacking_failed: [failed], present_passed: [passed] } };
  const put = (key: string, value: object, inputs: ArtifactRef[] = []) =>
    store.put({ key, producer: 'test', inputs, mediaType: 'application/json', body: JSON.stringify(value) });
  const pass = await put('pass', { attempt: 0, totals: { total_failed: 1, total_passed: 1 }, labels });
  const [rollouts, candidates] = [await put('rollouts', ['rollouts']), await put('candidates', ['candidates'])];
  const selection = await put('selection', { of: 'the campaign' }, [rollouts, candidates, pass]);
  const report = completeReport(reportFixture());
  mkdirSync(join(home, 'shop'), { recursive: true });
  const text = JSON.stringify({ ...report, selection: { ...report.selection, from: [selection] } });
  writeFileSync(join(home, 'shop', 'report.json'), text);

  const people = fileOf([{ rollout: failed.slice(0, 8), capability: SKILL, label: 'LACKING' }], 'people.jsonl');
  await importLabels(people, { home, name: 'shop' });
  const { rows } = JSON.parse(await compareLabels(undefined, { home, name: 'shop', json: true })) as Comparison;
  expect(rows).toEqual([expect.objectContaining({ capability: SKILL, compared: 1, observed: 1 })]);
});

it.each([
  [['LACKING', 'LACKING', 'PRESENT'] as const, 'LACKING'],
  [['LACKING', 'PRESENT'] as const, 'PRESENT'],
  [['LACKING', 'NA'] as const, 'NA'],
])('passes that say %j say together what most do, in doubt PRESENT', (labels, together) => {
  expect(majorityOf(labels.map((label) => ({ label })))).toBe(together);
});

it('counts message 0 as one', () => {
  expect(lackingIn([{ pass: 0, label: 'LACKING', message: 0 }])).toMatchObject({ message: 0, citing: 1 });
});

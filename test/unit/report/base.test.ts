/** The base model in a report: figures, groups and three conversations, on the page and on a narrow terminal. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { campaignSchema, type Stage } from '../../../src/domain/campaign';
import type { Message } from '../../../src/domain/messages';
import type { Report } from '../../../src/report/model';
import type { CampaignRecord } from '../../../src/domain/results';
import type { Rollout, ScoredRollout } from '../../../src/domain/rollout';
import { buildReport } from '../../../src/report/build/report';
import { completeReport, renderReport } from '../../../src/report/render';
import { reportText } from '../../../src/report/sections/report';
import { shortEpisode } from '../../../src/report/terminal';
import { ROLLOUTS_MEDIA_TYPE } from '../../../src/rollout/read';
import { outcomeOf, summarise } from '../../../src/domain/outcomes';
import { scoredRollout } from '../../support/scored-rollout';
import { wordsOf } from '../../support/browser';

const root = mkdtempSync(join(tmpdir(), 'report-base-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const store = openFolderStore(root);

const message = (n: number): Message =>
  n % 2 === 0 ? { role: 'user', content: `request ${n}` } : { role: 'assistant', content: `answer ${n}` };
const said = (task: string, reward: number, over: Partial<ScoredRollout> = {}): Rollout => ({
  ...(scoredRollout({ name: task, task, reward }) as ScoredRollout),
  messages: [message(0), message(1)],
  ...over,
});

async function reportOf(rollouts: Rollout[], stoppedAfter?: Stage): Promise<Report> {
  const ref = await store.put({
    key: JSON.stringify(rollouts),
    producer: 'test',
    inputs: [],
    mediaType: ROLLOUTS_MEDIA_TYPE,
    body: rollouts.map((rollout) => `${JSON.stringify(rollout)}\n`).join(''),
  });
  const record: CampaignRecord = {
    campaign: campaignSchema.parse({ name: 'mine', target: { kind: 'x' }, baseModel: { path: '/x' } }),
    ...{ workflowId: 'mine', startedAt: 0, finishedAt: 1, stageSeconds: { rollouts: 1 } },
    prepared: {
      ...{ base: 'base@1', pool: 'p', target: { name: 'library', version: '1' }, plan: ref },
      tasks: { train: 4, validation: 1, router: 1, test: 1 },
    },
    baseRollouts: {
      ref,
      purpose: 'base_rollouts',
      title: 'base rollouts',
      ...summarise(rollouts.map(outcomeOf)),
      seconds: 1,
    },
    ...(stoppedAfter && { stoppedAfter }),
  };
  const trainTasks = ['t0', 't1', 't2', 't3'].map((id, n) => ({
    ...{ id, split: 'train' as const },
    groups: [n < 2 ? 'loans' : 'returns'],
  }));
  return completeReport(await buildReport({ store, record, tasks: [], trainTasks, spent: [] }));
}

const long = Array.from({ length: 60 }, (_, n) => message(n));
const rollouts = [
  said('t0', 0, { stopReason: 'max_steps', messages: long }),
  said('t1', 0.5),
  said('t2', 1, {
    messages: [
      { role: 'user', content: `\x1b[2Jred\u202e lamp ${'very '.repeat(200)}long` },
      {
        role: 'assistant',
        content: '',
        toolCalls: [{ id: 'c', name: 'lend', arguments: { title: 'x'.repeat(120) } }],
      },
      { role: 'tool', toolCallId: 'c', content: 'lent\nuntil May' },
    ],
  }),
  said('t3', 1),
];

test('success rate with interval and n, mean reward, groups, and conversations of different ends', async () => {
  const { base } = await reportOf(rollouts, 'rollouts');
  expect(base!.successRate).toMatchObject({ value: 0.5, n: 4, interval: { level: 0.95, method: 'wilson' } });
  expect(base!.meanReward).toMatchObject({ value: 0.625, n: 4 });
  expect(base!.groups!.map(({ group, tasks, arms }) => [group, tasks, arms[0]!.successRate.value])).toEqual([
    ['loans', 2, 0],
    ['returns', 2, 1],
  ]);
  const chosen = base!.conversations.map(({ task, outcome }) => [task, outcome]);
  expect(chosen).toEqual([
    ['t2', 'passed'],
    ['t0', 'failed'],
    ['t1', 'failed'],
  ]);
  // Where all ended alike, three of them; where none was scored, none.
  expect((await reportOf(rollouts.slice(2), 'rollouts')).base!.conversations).toHaveLength(2);
  const error = { type: 'BadEnvironment', message: 'no' };
  const none = await reportOf([{ status: 'broken', key: 'k', task: 't0', attempt: 0, error }], 'rollouts');
  expect(none.base).toMatchObject({ successRate: { value: null, n: 0 }, conversations: [] });
});

test.each([60, 99])('on a terminal of %d columns: short, escaped, and what is left out is said', async (columns) => {
  const broken: Rollout = {
    ...{ status: 'broken', key: 'b', task: 't9', attempt: 0 },
    error: { type: 'EnvironmentDied', message: 'exit code 3' },
  };
  const text = reportText(await reportOf([...rollouts, broken], 'rollouts'), columns);
  const lines = text.split('\n');
  expect(lines.filter((line) => line.length > columns)).toEqual([]);
  // eslint-disable-next-line no-control-regex -- that none is there
  expect(text).not.toMatch(/[\x00-\x09\x0b-\x1f\u202e]/);
  const flat = lines.map((line) => line.trim()).join(' ');
  expect(flat).toContain('t2: passed, reward 1.00, ended by agent stop ');
  expect(flat).toContain('\\u{1b}[2Jred\\u{202e} lamp very');
  expect(flat).toMatch(/very … \d+ more characters/);
  // The whole of a call, though it has no space to break at.
  expect(flat.replaceAll(' ', '')).toContain(`{"title":"${'x'.repeat(120)}"}`);
  expect(flat).toContain('result  lent until May');
  expect(flat).toMatch(/t0: failed, reward 0.00, ended by max steps/);
  expect(flat).toMatch(
    /request 6 … 30 messages are left out here … agent +answer 37 .*answer 39 … 20 messages are left out here …/,
  );
  expect(text).toMatch(/^all +4 +50\.0% .*0\.63/m);
  expect(text).toMatch(/^loans +2 +0\.0% .*0\.25/m);
  expect(flat).toContain(
    '1 rollout broke and is in no figure of success: 1 EnvironmentDied, as at task t9: exit code 3',
  );
});

test('a campaign that went on shows conversations on its page, not on the terminal', async () => {
  const report = await reportOf(rollouts, 'selection');
  expect(reportText(report, 99)).not.toContain('a success');
  const { html: file } = renderReport({ report });
  const html = wordsOf(file);
  expect(html).toContain('Base model');
  expect(html).toContain('t2: passed, reward 1.00');
  expect(file).toContain('"missing":20');
});

test('shortened for JSON lines, nothing of a conversation is lost without a word', async () => {
  const { base } = await reportOf(rollouts, 'rollouts');
  const [, failure] = base!.conversations.map(shortEpisode);
  expect(failure!.messages.map((one) => one.message)).toEqual([0, 1, 2, 3, 4, 5, 6, 37, 38, 39]);
  expect(failure!.missing).toBe(50);
});

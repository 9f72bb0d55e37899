/** Plain requests: what is measured of an answer, what counts as collapsed, and what the report says. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFolderStore } from '../../src/artifacts/folder-store';
import { plainSpec } from '../../src/domain/environment-spec';
import { collapsed, distinctRuns, type PlainMeasures } from '../../src/domain/plain';
import type { CampaignRecord, PlainResult } from '../../src/domain/results';
import { plain } from '../../src/environments/plain';
import { plainOf } from '../../src/report/build/plain';
import { plainSection } from '../../src/report/plain-section';
import { plainNotes } from '../../src/report/terminal-notes';
import { reportFixture } from '../support/report-fixture';
import { completeReport } from '../../src/report/render';

const home = mkdtempSync(join(tmpdir(), 'plain-'));
const store = openFolderStore(home);
afterAll(() => rmSync(home, { recursive: true }));

test('every request is one turn, and no two are the same', async () => {
  const environment = await plain.open(plainSpec, { store });
  const tasks = await environment.tasks('test');
  expect(tasks.length).toBe(60);
  const openings = await Promise.all(
    tasks.map(async ({ id }) => {
      const episode = await environment.reset({ id, seed: 1 });
      expect(await episode.step({ role: 'assistant', content: 'x' })).toMatchObject({ done: true });
      expect(episode.start.messages.map(({ role }) => role)).toEqual(['user']);
      return episode.start.messages[0]!.content;
    }),
  );
  expect(new Set(openings).size).toBe(60);
  await expect(environment.reset({ id: 'seed-60', seed: 1 })).rejects.toThrow('there are 60 plain requests');
});

test('runs of words tell a loop from a text', () => {
  expect(distinctRuns('the cat sat on the mat')).toBe(1);
  expect(distinctRuns('no no no no no no')).toBe(1 / 4);
  expect(distinctRuns('yes')).toBe(1);
  expect(distinctRuns('')).toBe(1);
});

test('a policy has collapsed where the mean leaves a limit', () => {
  const base = { tokens: 60, distinct: 0.9, baseLogprob: -0.5 };
  expect(collapsed({ of: base, base })).toEqual([]);
  expect(collapsed({ of: { tokens: 31, distinct: 0.71, baseLogprob: -1.4 }, base })).toEqual([]);
  expect(collapsed({ of: { tokens: 29, distinct: 0.69, baseLogprob: -1.6 }, base })).toHaveLength(3);
  expect(collapsed({ of: { ...base, tokens: 121 }, base })).toEqual(['its answers are more than twice as long']);
});

const measure = (n: number, tokens: number, baseLogprob?: number) => ({
  task: `seed-${n}`,
  tokens,
  distinct: 0.9,
  ...(baseLogprob !== undefined && { baseLogprob }),
});

async function reported(measures: PlainMeasures, failed: PlainResult['failed'] = []) {
  const body = JSON.stringify(measures);
  const ref = await store.put({ key: body, producer: 'test', inputs: [], mediaType: 'application/json', body });
  const policies = Object.keys(measures).map((name) => ({ name, rollouts: {} as never }));
  const record = { plain: { policies, failed, measures: ref } } as unknown as CampaignRecord;
  return plainOf({ store, record, level: { confidence: 0.95, seed: 1 } });
}

test('the report pairs every policy with the base model, and says what has collapsed', async () => {
  const six = [0, 1, 2, 3, 4, 5];
  const found = await reported({
    base: six.map((n) => measure(n, 40, -0.5)),
    kept: six.map((n) => measure(n, 40 + n, -0.6)),
    // One of its answers is empty: nothing of it was likely or not.
    silent: six.map((n) => (n === 0 ? measure(0, 0) : measure(n, 4, -0.5 - n / 10))),
  });
  const [base, kept, silent] = found.plain!.policies;
  expect(base).not.toHaveProperty('toBase');
  expect(kept).toMatchObject({ tokens: { value: 42.5, n: 6, unit: 'tokens' }, collapsed: [] });
  expect(kept!.toBase).toMatchObject({ value: expect.closeTo(-0.1), n: 6, unit: 'nats' });
  expect(silent!.toBase).toMatchObject({ value: expect.closeTo(-0.3), n: 5 });
  expect(silent!.collapsed).toEqual(['its answers are less than half as long']);
  const report = completeReport({ ...reportFixture(), ...found });
  expect(plainSection(report)?.text).toContain('no: its answers are less than half as long');
  expect(plainNotes(report)).toEqual([
    'silent has lost what the base model does on plain requests: its answers are less than half as long',
  ]);
});

test('what could not be done of it is said; a campaign without it has nothing of it', async () => {
  const found = await reported({}, [{ name: 'trace', reason: 'no server' }]);
  expect(plainNotes(completeReport({ ...reportFixture(), ...found }))).toEqual(['plain requests, trace: no server']);
  const none = await plainOf({ store, record: {} as CampaignRecord, level: { confidence: 0.95, seed: 1 } });
  expect(none).toEqual({});
});

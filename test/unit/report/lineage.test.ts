/** From a figure back to every rollout behind it, in the store and by the commands `show` and `report`. */
import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../../src/cli/errors';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { lineage } from '../../../src/report/lineage';
import { parseReport, REPORT_VERSION } from '../../../src/report/model';
import { completeReport, renderReport } from '../../../src/report/render';
import { runCommand } from '../../support/campaign-command';
import { reportFixture } from '../../support/report-fixture';
import { brokenRollout, scoredRollout } from '../../support/scored-rollout';
import { temporaryFolder } from '../../support/temporary-folder';
import { campaignStore } from './stored';

const home = temporaryFolder();
const { store, keepRollouts } = campaignStore(join(home, 'artifacts'));

const rollout = (task: string, reward: number) => scoredRollout({ name: task, task, reward });
/** Something that is no batch. */
const put = (key: string, producer: string, inputs: ArtifactRef[]) =>
  store.put({ key, producer, inputs, mediaType: 'text/plain', body: key });

/** evaluation <- adapter <- (training batch <- labels <- base batch, labels). */
async function chain() {
  const base = await keepRollouts('base', [rollout('b1', 1), rollout('b2', 0.5), brokenRollout('b3', 'X', 'x')]);
  const labels = await put('labels', 'label', [base]);
  const training = await keepRollouts('training', [rollout('t1', 1)], [labels]);
  const folder = mkdtempSync(join(home, 'adapter-'));
  writeFileSync(join(folder, 'adapter_model.safetensors'), 'weights');
  const adapter = await store.putFolder({ key: 'adapter', producer: 'train', inputs: [training, labels], folder });
  const evaluation = await keepRollouts('evaluation', [rollout('e1', 1), rollout('e2', 0)], [adapter]);
  const draft = reportFixture();
  const trace = draft.arms!.find(({ name }) => name === 'trace')!;
  trace.successRate!.from = [evaluation];
  return { base, labels, adapter, evaluation, report: completeReport({ campaign: draft.campaign, arms: [trace] }) };
}
let made: Awaited<ReturnType<typeof chain>>;
beforeAll(async () => {
  made = await chain();
});

describe('lineage over a store in a folder', () => {
  test('a figure leads back to every batch behind it, each counted once', async () => {
    const { adapter, labels, report } = made;
    const { figure, steps, totals } = await lineage({ store, report, start: 'arms.trace.success_rate' });
    expect(figure?.id).toBe('arms.trace.success_rate');
    expect(totals).toEqual({ batches: 3, scored: 5, broken: 1, successes: 3 });
    // The labels are an input of the adapter too, and stand once.
    expect(steps).toMatchObject([
      { depth: 0, producer: 'rollouts: evaluation', rollouts: { scored: 2, broken: 0, successes: 1 } },
      { depth: 1, ref: { sha256: adapter.sha256 } },
      { depth: 2, producer: 'rollouts: training' },
      { depth: 3, ref: labels },
      { depth: 4, producer: 'rollouts: base' },
    ]);
  });

  test('a rollout that a batch took from another is counted once', async () => {
    const first = await keepRollouts('first', [rollout('f1', 1), rollout('f2', 0)]);
    const second = await keepRollouts('second', [rollout('f2', 0), rollout('f3', 1)], [first]);
    const { steps, totals } = await lineage({ store, start: second.sha256 });
    expect(totals).toEqual({ batches: 2, scored: 3, broken: 0, successes: 2 });
    expect(steps[0]).toMatchObject({ rollouts: { scored: 2, successes: 1 } });
  });

  test('an artifact can be named by its key', async () => {
    expect((await lineage({ store, start: 'labels' })).steps[0]).toMatchObject({ ref: made.labels });
  });

  test.each([
    ['zzz', true],
    ['ffffffffffff', false],
  ])('an unknown start, %s, is an error that names it', async (start, reported) => {
    const { report } = made;
    await expect(lineage({ store, start, ...(reported && { report }) })).rejects.toThrow(`'${start}'`);
  });

  test('an artifact that is not in the store is shown with the reason, the rest is walked', async () => {
    const lost = { ...made.base, sha256: 'f'.repeat(64), uri: `artifact:${'f'.repeat(64)}` };
    const top = await put('top', 'p', [lost, made.base]);
    const { steps, totals } = await lineage({ store, start: top.sha256 });
    expect(steps[1]?.problem).toMatch(/not in the store/);
    expect(totals).toEqual({ batches: 1, scored: 2, broken: 1, successes: 1 });
  });
});

describe('commands', () => {
  const run = async (...argv: string[]): Promise<string> => (await runCommand('--home', home, ...argv)).text;

  test('nothing to report on yet', async () => {
    const empty = mkdtempSync(join(home, 'empty-'));
    await expect(run('--home', empty, 'report')).rejects.toThrow(UserError);
  });

  test('lineage and report of a campaign', async () => {
    const file = join(home, 'demo', 'report.json');
    mkdirSync(join(home, 'demo'));
    const { json } = renderReport({ report: made.report });
    writeFileSync(file, json);

    const shown = await run('report');
    expect(shown.split('\n').length).toBeLessThanOrEqual(20);
    expect(shown).toContain(join(home, 'demo', 'report.html'));
    expect(readFileSync(join(home, 'demo', 'report.html'), 'utf8')).toContain('<!doctype html>');
    expect(parseReport(await run('report', 'demo', '--json')).campaign.name).toBe('demo');
    const out = join(home, 'copies', 'one');
    await run('report', 'demo', '--out', out);
    expect(readFileSync(join(out, 'report.json'), 'utf8')).toBe(json);

    const figure = 'arms.trace.success_rate';
    expect(await run('show', figure, '--campaign', 'demo')).toMatch(/in all: 3 batches/);
    expect(JSON.parse(await run('show', figure, '--json')).totals.batches).toBe(3);
    for (const argv of [
      ['show', 'arms.trace.rate'],
      ['report', '../demo'],
      ['show', figure, '--campaign', '../demo'],
    ])
      await expect(run(...argv)).rejects.toThrow(UserError);

    writeFileSync(file, '{"campaign": 1}');
    await expect(run('report', 'demo')).rejects.toThrow(UserError);
    const older = { ...JSON.parse(json), schemaVersion: undefined };
    expect(JSON.parse(json).schemaVersion).toBe(REPORT_VERSION);
    writeFileSync(file, JSON.stringify(older));
    await expect(run('report', 'demo')).rejects.toThrow(/schemaVersion.*`campaign run FILE`/);
  });
});

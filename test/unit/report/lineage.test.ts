import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openFolderStore } from '../../../src/artifacts/open-store';
import type { ArtifactStore } from '../../../src/artifacts/store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { reportSchema } from '../../../src/report/model';
import type { Rollout } from '../../../src/domain/rollout';
import { type ArtifactNode, lineage, lineageText } from '../../../src/report/lineage';
import { completeReport, renderReport } from '../../../src/report/render';
import { ROLLOUTS_MEDIA_TYPE } from '../../../src/rollout/read';
import { reportFixture } from '../../support/report-fixture';
import { scoredRollout } from '../../support/scored-rollout';
import { runCommand } from '../../support/campaign-command';

const home = mkdtempSync(join(tmpdir(), 'lineage-'));
const store: ArtifactStore = openFolderStore(join(home, 'artifacts'));
afterAll(() => rmSync(home, { recursive: true }));

const key = (name: string): string => Buffer.from(name).toString('hex').padEnd(64, '0');

const rollout = (task: string, reward: number) => scoredRollout({ name: task, task, reward });

const batch = (name: string, rollouts: Rollout[], inputs: ArtifactRef[] = []): Promise<ArtifactRef> =>
  store.put({
    key: `batch/${name}`,
    producer: `rollouts: ${name}`,
    inputs,
    mediaType: ROLLOUTS_MEDIA_TYPE,
    body: rollouts.map((record) => `${JSON.stringify(record)}\n`).join(''),
  });

interface Chain {
  base: ArtifactRef;
  labels: ArtifactRef;
  adapter: ArtifactRef;
  evaluation: ArtifactRef;
}

/** evaluation <- adapter <- (training batch <- labels <- base batch, labels). */
const chain = async (): Promise<Chain> => {
  const broken: Rollout = {
    status: 'broken',
    key: key('b3'),
    task: 'b3',
    attempt: 0,
    error: { type: 'X', message: 'x' },
  };
  const base = await batch('base', [rollout('b1', 1), rollout('b2', 0.5), broken]);
  const labels = await store.put({
    key: 'labels',
    producer: 'label',
    inputs: [base],
    mediaType: 'application/json',
    body: '{}',
  });
  const training = await batch('training', [rollout('t1', 1)], [labels]);
  const folder = mkdtempSync(join(home, 'adapter-'));
  writeFileSync(join(folder, 'adapter_model.safetensors'), 'weights');
  const adapter = await store.putFolder({ key: 'adapter', producer: 'train', inputs: [training, labels], folder });
  return {
    base,
    labels,
    adapter,
    evaluation: await batch('evaluation', [rollout('e1', 1), rollout('e2', 0)], [adapter]),
  };
};

const reportOver = async (evaluation: ArtifactRef) => {
  const draft = reportFixture();
  const trace = draft.arms!.find(({ name }) => name === 'trace')!;
  trace.successRate!.from = [evaluation];
  return completeReport({ campaign: draft.campaign, arms: [trace] });
};

describe('lineage over a store in a folder', () => {
  test('a figure leads back to every batch behind it, each counted once', async () => {
    const { evaluation, adapter, labels } = await chain();
    const tree = await lineage({ store, report: await reportOver(evaluation), start: 'arms.trace.success_rate' });
    expect(tree.totals).toEqual({ batches: 3, scored: 5, broken: 1, successes: 3 });
    const [first] = tree.root.inputs;
    expect(first).toMatchObject({ producer: 'rollouts: evaluation', rollouts: { scored: 2, broken: 0, successes: 1 } });
    expect(first?.inputs.map(({ ref }) => ref.sha256)).toEqual([adapter.sha256]);
    const [training, again] = first?.inputs[0]?.inputs ?? [];
    expect(training?.inputs[0]).toMatchObject({ ref: labels, inputs: [{ producer: 'rollouts: base' }] });
    expect(again).toMatchObject({ ref: labels, shared: true, inputs: [] });
  });

  test('as text: indented, shared artifacts once, totals last', async () => {
    const { evaluation, adapter, labels } = await chain();
    const text = lineageText(await lineage({ store, start: evaluation.sha256.slice(0, 12) }));
    const short = (ref: ArtifactRef): string => ref.sha256.slice(0, 8);
    const lines = text.split('\n');
    expect(lines[0]).toBe(
      `${short(evaluation)}  rollouts: evaluation  2 rollouts scored (1 successes), 0 broken  batch/evaluation`,
    );
    expect(lines[1]).toBe(`└─ ${short(adapter)}  train  adapter`);
    expect(lines[3]).toBe(`   │  └─ ${short(labels)}  label  labels`);
    expect(lines[5]).toBe(`   └─ shown above: ${short(labels)}`);
    expect(lines[6]).toBe('in all: 3 batches, 5 rollouts scored (3 successes), 1 broken');
  });

  test('a rollout that a batch took from another is counted once', async () => {
    const first = await batch('first', [rollout('f1', 1), rollout('f2', 0)]);
    const second = await batch('second', [rollout('f2', 0), rollout('f3', 1)], [first]);
    const { root, totals } = await lineage({ store, start: second.sha256 });
    expect(totals).toEqual({ batches: 2, scored: 3, broken: 0, successes: 2 });
    expect(root).toMatchObject({ rollouts: { scored: 2, successes: 1 } });
  });

  test('an artifact can be named by its key', async () => {
    const { labels } = await chain();
    expect((await lineage({ store, start: 'labels' })).root).toMatchObject({ ref: labels });
  });

  test("a rollout's key, or its beginning, leads to its batch", async () => {
    const { evaluation, base } = await chain();
    const report = await reportOver(evaluation);
    const whole = await lineage({ store, report, start: key('b2') });
    expect(whole.root).toMatchObject({
      kind: 'rollout',
      rollout: { task: 'b2', reward: 0.5 },
      inputs: [{ ref: base }],
    });
    expect(lineageText(whole)).toContain('task b2, attempt 0, scored, reward 0.5');
    const begun = await lineage({ store, report, start: key('b3').slice(0, 8) });
    expect(begun.root).toMatchObject({ rollout: { status: 'broken' } });
  });

  test('an unknown start is an error that lists near figures, if any are', async () => {
    const { evaluation } = await chain();
    const report = await reportOver(evaluation);
    await expect(lineage({ store, report, start: 'arm.trace.sucess_rate' })).rejects.toThrow(
      /is no figure, artifact or rollout; near ones: arms.trace.success_rate/,
    );
    await expect(lineage({ store, report, start: 'zzz' })).rejects.toThrow(/rollout$/);
    await expect(lineage({ store, start: 'ffffffffffff' })).rejects.toThrow("'ffffffffffff' is no figure");
  });

  test('an artifact that is not in the store is shown with the reason, the rest is walked', async () => {
    const { base } = await chain();
    const lost = { ...base, sha256: 'f'.repeat(64), uri: `artifact:${'f'.repeat(64)}` };
    const top = await store.put({
      key: 'top',
      producer: 'p',
      inputs: [lost, base],
      mediaType: 'text/plain',
      body: 'top',
    });
    const { root, totals } = await lineage({ store, start: top.sha256 });
    expect((root as ArtifactNode).inputs[0]?.problem).toMatch(/not in the store/);
    expect(totals).toEqual({ batches: 1, scored: 2, broken: 1, successes: 1 });
  });

  test('a training of many steps stays a short text', async () => {
    const batches: ArtifactRef[] = [];
    for (let step = 0; step < 30; step++) {
      const inputs = await Promise.all(
        step === 0
          ? []
          : [
              store.put({
                key: `step-${step}`,
                producer: 'train',
                inputs: [...batches],
                mediaType: 'x/y',
                body: `s${step}`,
              }),
            ],
      );
      batches.push(await batch(`training step ${step}`, [rollout(`s${step}`, 1)], inputs));
    }
    const top = await store.put({ key: 'final', producer: 'train', inputs: batches, mediaType: 'x/y', body: 'final' });
    const tree = await lineage({ store, start: top.sha256 });
    expect(tree.totals.batches).toBe(30);
    expect(lineageText(tree).split('\n').length).toBeLessThan(100);
  });
});

describe('commands', () => {
  const run = async (...argv: string[]): Promise<string> => (await runCommand('--home', home, ...argv)).text;

  test('nothing to report on yet', async () => {
    const empty = mkdtempSync(join(home, 'empty-'));
    await expect(run('--home', empty, 'report')).rejects.toThrow(/no report in .*; make one with `campaign run FILE`/);
  });

  test('lineage and report of a campaign', async () => {
    const { evaluation } = await chain();
    mkdirSync(join(home, 'demo'), { recursive: true });
    const { json } = renderReport({ report: await reportOver(evaluation) });
    writeFileSync(join(home, 'demo', 'report.json'), json);

    expect(await run('report')).toMatch(/^demo: completed[\s\S]*trace +4,608[\s\S]*report\.html$/);
    expect(readFileSync(join(home, 'demo', 'report.html'), 'utf8')).toContain('<!doctype html>');
    expect(reportSchema.parse(JSON.parse(await run('report', 'demo', '--json'))).campaign.name).toBe('demo');
    const out = join(home, 'copies', 'one');
    await run('report', 'demo', '--out', out);
    expect(readFileSync(join(out, 'report.json'), 'utf8')).toBe(json);

    expect(await run('lineage', 'arms.trace.success_rate', '--campaign', 'demo')).toMatch(/in all: 3 batches/);
    expect(JSON.parse(await run('lineage', 'arms.trace.success_rate', '--json')).totals.batches).toBe(3);
    await expect(run('lineage', 'arms.trace.rate')).rejects.toThrow(/near ones: arms.trace/);
    await expect(run('report', '../demo')).rejects.toThrow(/there is no campaign \.\.\/demo in .*known: demo/);
    await expect(run('lineage', 'arms.trace.success_rate', '--campaign', '../demo')).rejects.toThrow(
      /has no report in .*campaigns with one: demo/,
    );

    writeFileSync(join(home, 'demo', 'report.json'), '{"campaign": 1}');
    await expect(run('report', 'demo')).rejects.toThrow(/report\.json is no report of this version \(/);
    const { schemaVersion, ...older } = JSON.parse(json) as Record<string, unknown>;
    expect(schemaVersion).toBe(2);
    writeFileSync(join(home, 'demo', 'report.json'), JSON.stringify(older));
    await expect(run('report', 'demo')).rejects.toThrow(
      /\(schemaVersion: the form is an older one, and this program reads 2\); the same `campaign run FILE` writes it anew/,
    );
  });
});

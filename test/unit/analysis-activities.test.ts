/** The activities of analysis and synthesis over injected kinds: keys that carry the maker, and nothing that is computed twice. */
import { MockActivityEnvironment } from '@temporalio/testing';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { createAnalysis } from '../../src/activities/analyse';
import type { Dependencies } from '../../src/activities/context';
import { EnvironmentPool } from '../../src/activities/environments';
import { createSynthesis } from '../../src/activities/synthesise';
import type { Analyst, AnalystKind } from '../../src/analyst/analyst';
import { openFolderStore } from '../../src/artifacts/folder-store';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { selectionRuleSchema } from '../../src/domain/campaign';
import { selectionSchema, type LabelPass } from '../../src/domain/capability';
import { defineKind } from '../../src/domain/kind';
import { registry } from '../../src/registry';
import type { Synthesizer, SynthesizerKind } from '../../src/synthesis/synthesizer';
import { scoredRollout } from '../support/scored-rollout';

const home = mkdtempSync(join(tmpdir(), 'analysis-'));
const store = openFolderStore(join(home, 'artifacts'));
const target = { kind: 'builtin', name: 'shop' };
const rule = selectionRuleSchema.parse({ passes: 3, votes: 2 });
const candidate = { name: 'tell_the_price', definition: 'Tells the price.', examples: [] };
const calls: string[] = [];
let labels: LabelPass;
let rollouts: ArtifactRef;

const analystKind = (version: string): AnalystKind =>
  defineKind({
    kind: 'counting',
    version,
    options: { word: z.string().default('x') },
    open: (_, identity): Analyst => ({
      identity,
      selects: 'by labels',
      discover: async ({ progress }) => {
        calls.push('discover');
        progress(1, 1);
        return [candidate];
      },
      label: async ({ pass }) => {
        calls.push(`label ${pass}`);
        return labels;
      },
    }),
  });
const synthesizerKind: SynthesizerKind = defineKind({
  kind: 'counting',
  version: '1',
  options: {},
  open: (_, identity): Synthesizer => ({
    identity,
    write: async () => {
      calls.push('write');
      return { source: 'export const n = 1;', rationale: 'one' };
    },
    revise: async ({ previous }) => {
      calls.push(`revise after ${previous.findings.join()}`);
      return { source: 'export const n = 2;', rationale: 'two' };
    },
  }),
});

const activities = (version = '1') => {
  const kinds = { ...registry, analysts: [analystKind(version)], synthesizers: [synthesizerKind] };
  const environments = new EnvironmentPool(store, registry.environments);
  const deps: Dependencies = { store, environments, kinds, home, python: 'python' };
  return { ...createAnalysis(deps), ...createSynthesis(deps) };
};
const heartbeats: unknown[] = [];
function run<I, O>(activity: (input: I) => Promise<O>, input: I): Promise<O> {
  const environment = new MockActivityEnvironment();
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details));
  return environment.run(activity, input) as Promise<O>;
}
const discover = (analyst: { kind: string; word?: string }, version?: string) =>
  run(activities(version).discover, { target, analyst, rule, rollouts });

beforeAll(async () => {
  rollouts = await stored('different', ['pay', 'no']);
});
const stored = (key: string, answers: string[]): Promise<ArtifactRef> => {
  const records = answers.map((content, n) => ({
    ...scoredRollout({ name: `r${n}`, task: `t${n}`, reward: n % 2 }),
    messages: [{ role: 'assistant', content }],
  }));
  return store.put({
    key: `rollouts/${key}`,
    producer: 'rollouts: test',
    inputs: [],
    mediaType: 'application/jsonl',
    body: records.map((record) => `${JSON.stringify(record)}\n`).join(''),
  });
};
beforeEach(() => {
  calls.length = 0;
  labels = {
    attempt: 0,
    totals: { total_failed: 1, total_passed: 1 },
    labels: {
      [candidate.name]: {
        ...{ lacking_failed: ['a'], present_failed: [], na_failed: [] },
        ...{ lacking_passed: [], present_passed: ['b'], na_passed: [] },
      },
    },
  };
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

test('what an analyst found is found again by the same one only', async () => {
  const first = await discover({ kind: 'counting' });
  expect(await discover({ kind: 'counting' })).toEqual(first);
  expect(calls).toEqual(['discover']);
  expect(heartbeats).toContainEqual({ kind: 'analysis', title: 'discover candidates', done: 1, total: 1 });
  // The same candidates, so the same bytes; but asked anew.
  await discover({ kind: 'counting', word: 'y' });
  await discover({ kind: 'counting' }, '2');
  expect(calls).toEqual(['discover', 'discover', 'discover']);
});

test('a labeling pass is paid for once', async () => {
  const { ref: candidates } = await discover({ kind: 'counting' });
  const input = { target, analyst: { kind: 'counting' }, rollouts, candidates, pass: 0, seed: 1 };
  calls.length = 0;
  const pass = await run(activities().label, input);
  expect(await run(activities().label, input)).toEqual(pass);
  await run(activities().label, { ...input, pass: 1 });
  expect(calls).toEqual(['label 0', 'label 1']);
  const { selected } = await run(activities().select, { rule, rollouts, candidates, labels: [pass, pass] });
  expect(selected).toEqual([{ candidate, votes: 2 }]);
});

test.each([
  ['a trajectory in two lists', () => labels.labels[candidate.name]!.present_failed.push('a'), /both .*lacking_failed/],
  ['another name', () => (labels.labels = { other_name: labels.labels[candidate.name]! }), /labels other_name/],
])('a pass with %s is refused and not kept', async (_, spoil, message) => {
  const { ref: candidates } = await discover({ kind: 'counting' });
  spoil();
  const input = { target, analyst: { kind: 'counting' }, rollouts, candidates, pass: 7, seed: 1 };
  const failure = { type: 'LabelsInvalid', nonRetryable: true, message: expect.stringMatching(message) };
  await expect(run(activities().label, input)).rejects.toMatchObject(failure);
  await expect(run(activities().label, input)).rejects.toMatchObject(failure);
});

test('candidates that are selected outright need no pass', async () => {
  const { ref: candidates } = await discover({ kind: 'counting' });
  const { selected } = await run(activities().select, { rule, rollouts, candidates });
  expect(selected).toEqual([{ candidate, votes: 0 }]);
});

test('trajectories that are all the same select nothing, by labels or outright, and the selection says why', async () => {
  const { ref: candidates } = await discover({ kind: 'counting' });
  const pass = await run(activities().label, {
    ...{ target, analyst: { kind: 'counting' }, rollouts, candidates, pass: 0, seed: 1 },
  });
  const same = await stored('same', ['sorry .', ' sorry  .', 'sorry .']);
  for (const labels of [undefined, [pass, pass]]) {
    const input = { rule, rollouts: same, candidates, ...(labels && { labels }) };
    const { ref, selected } = await run(activities().select, input);
    expect(selected).toEqual([]);
    const selection = selectionSchema.parse(JSON.parse((await store.read(ref)).toString()));
    expect(selection).toMatchObject({
      capabilities: [{ name: candidate.name, votes: labels ? 2 : 0, selected: false }],
      reason: expect.stringMatching(/^all 3 base rollouts say the same: "sorry \."/),
    });
  }
});

test('an environment is written once and revised once for the same findings', async () => {
  const input = { target, synthesizer: { kind: 'counting' }, rollouts, candidate };
  const written = await run(activities().synthesize, { ...input, round: 1 });
  expect(await run(activities().synthesize, { ...input, round: 1 })).toEqual(written);
  const previous = { module: written, findings: ['too short'] };
  const revised = await run(activities().synthesize, { ...input, round: 2, previous });
  expect(await run(activities().synthesize, { ...input, round: 2, previous })).toEqual(revised);
  expect(calls).toEqual(['write', 'revise after too short']);
  expect((await store.read(revised)).toString()).toContain('export const n = 2;');
});

test('a kind that the worker does not know is told', async () => {
  const failure = { type: 'BadInput', message: expect.stringMatching(/"llm" is not known to this worker.*counting/) };
  await expect(discover({ kind: 'llm' })).rejects.toMatchObject(failure);
});

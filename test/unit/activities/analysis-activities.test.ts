/** The activities of analysis and synthesis over injected kinds: keys that carry the maker, and nothing that is computed twice. */
import { join } from 'node:path';
import { z } from 'zod';
import { createControlActivities } from '../../../src/activities';
import type { Dependencies } from '../../../src/activities/context';
import { EnvironmentPool } from '../../../src/activities/environments';
import type { Analyst, AnalystKind, DiscoverInput } from '../../../src/analyst/analyst';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { selectionRuleSchema } from '../../../src/domain/campaign';
import type { LabelPass, Lacking } from '../../../src/domain/capability';
import { defineKind } from '../../../src/domain/kinds';
import type { ScoredRollout } from '../../../src/domain/rollout';
import { registry } from '../../support/kinds';
import type { Synthesizer, SynthesizerKind, WriteInput } from '../../../src/synthesis/synthesizer';
import { put, run as runActivity } from '../../support/activity-inputs';
import { putRollouts, scoredRollout } from '../../support/scored-rollout';
import { temporaryFolder } from '../../support/temporary-folder';

const home = temporaryFolder();
const store = openFolderStore(join(home, 'artifacts'));
const target = { kind: 'shop' };
const rule = selectionRuleSchema.parse({ passes: 3, votes: 2 });
const candidate = { name: 'tell_the_price', definition: 'Tells the price.', examples: [] };
/** The analyst's citations of it. */
const citations = [{ rollout: 'a', message: 1, says: 'it says: no price .' }];
const environments = new EnvironmentPool(store, registry.environments);
const calls: string[] = [];
let labels: LabelPass;
let ignoresSeed: true | undefined;
let onDiscover: (input: DiscoverInput) => Promise<void>;
let rollouts: ArtifactRef;
let candidates: ArtifactRef;
let rationale: string;
/** Inputs of the synthesizer. */
const told: Pick<WriteInput, 'candidate' | 'others'>[] = [];

const analystKind = (version: string): AnalystKind =>
  defineKind({
    kind: 'counting',
    version,
    options: { word: z.string().default('x') },
    open: (_, identity): Analyst => ({
      identity,
      selects: 'by labels',
      ...(ignoresSeed && { ignoresSeed }),
      discover: async (input) => {
        calls.push('discover');
        await onDiscover(input);
        input.progress(1, 1);
        return { candidates: [{ ...candidate, citations }], faults: [] };
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
    write: async ({ candidate, others }) => {
      calls.push('write');
      told.push({ candidate, others });
      return { source: 'export const n = 1;', rationale };
    },
    revise: async ({ previous }) => {
      calls.push(`revise after ${previous.findings.join()}`);
      return { source: 'export const n = 2;', rationale: 'two' };
    },
  }),
});

const activities = (version = '1') => {
  const kinds = { ...registry, analysts: [analystKind(version)], synthesizers: [synthesizerKind] };
  const deps: Dependencies = { store, environments, kinds, home, python: 'python' };
  return createControlActivities(deps);
};
const heartbeats: unknown[] = [];
const run = <I, O>(activity: (input: I) => Promise<O>, input: I, attempt = 1): Promise<O> =>
  runActivity(activity, input, { attempt, beats: heartbeats });
/** What activities of the analyst are asked. */
const about = (analyst: { kind: string; word?: string } = { kind: 'counting' }) => ({
  ...{ campaign: 'test', budget: {}, target, analyst, rollouts, seed: 1 },
});
const discover = (word = 'x', { version = '1', seed = 1, attempt = 1 } = {}) =>
  run(activities(version).discover, { ...about({ kind: 'counting', word }), rule, seed }, attempt);
/** Of what the analyst found, in so many of its passes. */
const labelInput = async (pass: number) => ({ ...about(), candidates: (await discover()).ref, pass });
/** What the synthesizer is asked first. */
const asked = (seed: number) => ({
  ...{ campaign: 'test', budget: {}, target, synthesizer: { kind: 'counting' }, rollouts, candidates, candidate, seed },
  ...{ round: 1, others: [] as Lacking[] },
});

beforeAll(async () => {
  rollouts = await stored('different', ['pay', 'no']);
  candidates = await put(store, 'found', JSON.stringify({ candidates: [{ ...candidate, citations }], faults: [] }));
});
const stored = (key: string, answers: string[]): Promise<ArtifactRef> => {
  const records = answers.map((content, n) => ({
    ...(scoredRollout({ name: `r${n}`, task: `t${n}`, reward: n % 2 }) as ScoredRollout),
    messages: [{ role: 'assistant' as const, content }],
  }));
  return putRollouts(store, key, records);
};
beforeEach(() => {
  calls.length = 0;
  told.length = 0;
  ignoresSeed = undefined;
  onDiscover = async () => undefined;
  rationale = 'one';
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

test('what an analyst found is found again by the same one only', async () => {
  const first = await discover();
  expect(await discover()).toEqual(first);
  expect(calls).toEqual(['discover']);
  expect(heartbeats).toContainEqual({ kind: 'analysis', title: 'discover candidates', done: 1, total: 1 });
  // The same candidates, so the same bytes; but asked anew.
  await discover('y');
  await discover('x', { version: '2' });
  expect(calls).toEqual(['discover', 'discover', 'discover']);
});

test('another seed is another discovery, unless the analyst says that it makes no difference', async () => {
  for (const seed of [11, 12, 12]) await discover('seeded', { seed });
  expect(calls).toEqual(['discover', 'discover']);
  ignoresSeed = true;
  const refs = await Promise.all([13, 14].map((seed) => discover('seedless', { seed })));
  expect(refs[0]).toEqual(refs[1]);
  expect(new Set(calls).size).toBe(1);
});

test('a labeling pass is paid for once', async () => {
  const input = await labelInput(0);
  calls.length = 0;
  const pass = await run(activities().label, input);
  expect(await run(activities().label, input)).toEqual(pass);
  await run(activities().label, { ...input, pass: 1 });
  expect(calls).toEqual(['label 0', 'label 1']);
  const { candidates } = input;
  const { selected } = await run(activities().select, { rule, rollouts, candidates, labels: [pass, pass] });
  expect(selected).toEqual([{ candidate, votes: 2 }]);
  // Those that are selected outright need no pass.
  const outright = await run(activities().select, { rule, rollouts, candidates });
  expect(outright.selected).toEqual([{ candidate, votes: 0 }]);
});

test.each([
  ['a trajectory in two lists', () => labels.labels[candidate.name]!.present_failed.push('a')],
  ['another name', () => (labels.labels = { other_name: labels.labels[candidate.name]! })],
])('a pass with %s is refused and not kept', async (_, spoil) => {
  const input = await labelInput(7);
  spoil();
  const failure = { type: 'LabelsInvalid', nonRetryable: true };
  await expect(run(activities().label, input)).rejects.toMatchObject(failure);
  await expect(run(activities().label, input)).rejects.toMatchObject(failure);
});

test('an environment is written once and revised once for the same findings', async () => {
  const input = asked(1);
  const written = await run(activities().synthesize, input);
  expect(await run(activities().synthesize, input)).toEqual(written);
  const previous = { module: written, findings: ['too short'] };
  const revised = await run(activities().synthesize, { ...input, round: 2, previous });
  expect(await run(activities().synthesize, { ...input, round: 2, previous })).toEqual(revised);
  expect(calls).toEqual(['write', 'revise after too short']);
  expect((await store.read(revised)).toString()).toContain('export const n = 2;');
});

test('a synthesizer reads the citations of a selected capability from the store: the selection holds none', async () => {
  const input = asked(3);
  const { selected } = await run(activities().select, { rule, rollouts, candidates });
  expect(JSON.stringify(selected)).not.toContain('no price');
  await run(activities().synthesize, { ...input, candidate: selected[0]!.candidate });
  expect(told).toEqual([{ candidate: { ...candidate, citations }, others: [] }]);
});

test.each(['\n', '\u2028'])('a rationale stays a comment, whatever ends its lines (%j)', async (end) => {
  rationale = `a${end}throw 1`;
  const ref = await run(activities().synthesize, asked(100 + end.charCodeAt(0)));
  expect((await store.read(ref)).toString()).toBe('export const n = 1;\n// Rationale: a throw 1\n');
});

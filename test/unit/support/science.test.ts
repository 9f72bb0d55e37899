/** The pure parts of `make science`: offline selections, shuffled labels and rewards, rows, tables, the page. */
import { laidOver } from '../../../science/scale';
import { settingsOf } from '../../../science/settings';
import { csvOf, rowsTable, shareText } from '../../../science/tables';
import { outcomesOf, rowsOf, withPolicy } from '../../../science/rows';
import { selectedBy, shuffledLabels, variantsOf } from '../../../science/selection';
import { withShuffledReward } from '../../../science/shuffled-reward';
import { hitsOf, neededBy } from '../../../science/truth';
import { selectionRuleSchema } from '../../../src/domain/campaign';
import type { LabelPass } from '../../../src/domain/capability';
import { completeReport } from '../../../src/report/render';
import { seededRandom } from '../../../src/domain/seeds';
import type { Run } from '../../../src/report/comparison';
import { rules } from '../../../src/analyst/rules/rules';
import { generators } from '../../../src/synthesis/generators';
import { createShop } from '../../../src/environments/shop/shop';
import { openModule } from '../../../src/sandbox/module';
import { noLedger } from '../../support/memory-ledger';
import { rollouts } from '../analyst/simulation';
import { reportFixture } from '../../support/report-fixture';

const ids = (letter: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${letter}${n}`);

/** `lacking` of 40 failed trajectories lack it, and none of 40 passed ones. */
const passOf = (attempt: number, lacking: number): LabelPass => ({
  attempt,
  totals: { total_failed: 40, total_passed: 40 },
  labels: {
    some_skill: {
      ...{ lacking_failed: ids('f', 40).slice(0, lacking), present_failed: ids('f', 40).slice(lacking), na_failed: [] },
      ...{ lacking_passed: [], present_passed: ids('p', 40), na_passed: [] },
    },
  },
});
/** A pass looks at a part of the trajectories. */
const without = ({ labels, ...pass }: LabelPass, left: readonly string[]): LabelPass => ({
  ...pass,
  totals: { total_failed: 39, total_passed: 39 },
  labels: Object.fromEntries(
    Object.entries(labels).map(([name, lists]) => [
      name,
      Object.fromEntries(Object.entries(lists).map(([list, of]) => [list, of.filter((id) => !left.includes(id))])),
    ]),
  ) as LabelPass['labels'],
});
const rule = selectionRuleSchema.parse({});

test('a constant of the rule decides what would have been selected', () => {
  const passes = Array.from({ length: 10 }, (_, n) => passOf(n, n < 8 ? 10 : 1));
  const selected = new Map(
    variantsOf(rule).map(({ name, rule: of, passes: n }) => [
      name,
      selectedBy({ passes: passes.slice(0, n), rule: of }),
    ]),
  );
  expect([...selected].flatMap(([name, names]) => (names.length > 0 ? [name] : []))).toEqual([
    'as it is: N 10, rho 0.1, delta 0.2, K 8',
    ...['N 1, K 1', 'N 3, K 3', 'N 5, K 4', 'rho 0.01', 'rho 0.05', 'rho 0.2', 'delta 0.05', 'delta 0.1', 'K 1', 'K 5'],
  ]);
});

test('shuffled labels keep their numbers and lose what they say', () => {
  const passes = Array.from({ length: 10 }, (_, n) => passOf(n, 20));
  expect(selectedBy({ passes, rule })).toEqual(['some_skill']);
  const random = seededRandom('test', 1);
  const shuffled = shuffledLabels(passes, random);
  const { some_skill: lists } = shuffled[0]!.labels;
  expect([...lists!.lacking_failed, ...lists!.lacking_passed]).toHaveLength(20);
  expect(lists!.lacking_passed.length).toBeGreaterThan(3);
  expect(shuffled.slice(1).map(({ labels }) => labels)).toEqual(shuffled.slice(1).map(() => shuffled[0]!.labels));
  const sampled = passes.map((pass, n) => without(pass, [`f${n}`, `p${n}`]));
  expect(selectedBy({ passes: shuffledLabels(sampled, () => 0.999), rule })).toEqual(['some_skill']);
  const found = Array.from({ length: 40 }, () => selectedBy({ passes: shuffledLabels(sampled, random), rule }));
  expect(found.filter(({ length }) => length > 0).length).toBeLessThan(10);
});

test('a shuffled reward is a function of the state alone, and says nothing of the solution', async () => {
  const description = await createShop().describe();
  const made = await rollouts({ lacks: ['tell'], seed: 1, count: 60 });
  const work = { progress: () => {}, signal: new AbortController().signal, ledger: noLedger };
  const input = { rollouts: made, description, rule, seed: 1, ...work };
  const { candidates } = await rules.open({ kind: 'rules' }, undefined).discover({ ...input, quotable: new Set() });
  const candidate = candidates.find(({ name }) => name === 'tell_requested_information')!;
  const synthesizer = await generators.open({ kind: 'generators' }, undefined);
  const { source } = await synthesizer.write({ ...input, candidate, others: [], forbidden: [] });
  const text = withShuffledReward(`${source}\n// Rationale: as stored\n`);
  expect(() => withShuffledReward(text)).toThrow('give one of the generators');

  const rewardsOf = async (code: string): Promise<number[]> => {
    const module = openModule({ source: code });
    const seeds = Array.from({ length: 16 }, (_, n) => n);
    const rewards: number[] = [];
    for (const seed of seeds) {
      let state = await module.make(seed);
      for (const message of await module.solve(seed)) ({ state } = await module.step(state, message));
      rewards.push((await module.reward(state)).reward);
    }
    return rewards;
  };
  expect(new Set(await rewardsOf(source))).toEqual(new Set([1]));
  const rewards = await rewardsOf(text);
  expect(await rewardsOf(text)).toEqual(rewards);
  const won = rewards.filter((reward) => reward === 1).length;
  expect([won > 1, won < 15]).toEqual([true, true]);
  expect(Math.max(...rewards.filter((reward) => reward < 1))).toBeLessThan(0.25);
});

/** Two tasks, base solves the first, `trace` both. */
const runOf = (seed: number): Run => {
  const draft = completeReport(reportFixture());
  return {
    name: `run-${seed}`,
    report: { ...draft, campaign: { ...draft.campaign, seed } },
    matrix: { tasks: ['a', 'b'], options: ['base', 'trace'], outcomes: [[1, 1], [0, 1]] }, // prettier-ignore
  };
};

test('a row is over the seeds that have it, and a policy that was added is one like the others', () => {
  const [one, two] = [runOf(1), runOf(2)];
  const trace = one.report.arms!.find(({ name }) => name === 'trace')!;
  const outcomes = new Map([...outcomesOf(one, 'base')].map(([task, value]) => [task, 1 - value!]));
  const runs = [withPolicy(one, { arm: { ...trace, name: 'other' }, outcomes }), two];
  const [base, other] = rowsOf({ runs, names: ['base', 'other'], against: ['base'] });
  expect([base?.success?.value, base?.success?.runs, base?.differences[0]?.difference]).toEqual([0.5, 2, undefined]);
  expect([other?.success?.runs, other?.differences[0]?.difference?.value]).toEqual([1, 0]);
  expect(other?.differences[0]?.tests).toEqual([{ better: 1, worse: 1, p: 1 }]);
  expect(other?.bySeed).toEqual([{ seed: 1, success: 0.5 }]);
  const text = csvOf(
    rowsTable({
      rows: [other!, ...rowsOf({ runs, names: ['gone'], against: ['base'] })],
      reasons: { gone: 'so, why' },
    }),
  );
  expect(text).toContain(',1 × 2,');
  expect(text).toContain('\ngone,–,–,"so, why",–,');
});

test('shares have their interval, and nothing of nothing is a dash', () => {
  expect(shareText(9, 10)).toBe('9 of 10, 90.0% (59.6 to 98.2)');
  expect(shareText(0, 0)).toBe('–');
});

test('what a task needs of what was planted, and what was found of it', () => {
  const needs = ['train-0', 'train-1', 'train-2'].map((task) =>
    neededBy({ task, planted: ['refuse', 'tell'], parameters: {} }),
  );
  expect(needs.every((text) => ['none', 'refuse', 'tell', 'refuse and tell'].includes(text))).toBe(true);
  expect(
    hitsOf({ selected: ['tell_requested_information', 'select_matching_record'], planted: ['tell', 'ask'] }),
  ).toEqual({ right: 1, selected: 2, planted: 2 });
});

test('settings are read from the environment, and a wrong one is named', () => {
  expect(settingsOf({ SEEDS: '4,5', ONLY: 'null' })).toMatchObject({ seeds: [4, 5], small: false });
  expect(settingsOf({ SMALL: '1', SCIENCE_HOME: '/x' })).toMatchObject({ seeds: [1], home: '/x/small', small: true });
  expect(() => settingsOf({ SEEDS: '1,1' })).toThrow('SEEDS is "1,1"');
  expect(() => settingsOf({ ONLY: '(' })).toThrow('ONLY is "("');
  expect(laidOver({ a: { b: 1, c: 1 }, d: [1] }, { a: { c: 2 }, d: [2] })).toEqual({ a: { b: 1, c: 2 }, d: [2] });
});

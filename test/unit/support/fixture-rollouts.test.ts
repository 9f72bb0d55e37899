/** The rollouts that recorded prompts are built from, what was planted in them, and how an analysis of them is scored. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { selectionRuleSchema } from '../../../src/domain/campaign';
import type { LabelPass } from '../../../src/domain/capability';
import { selectCapabilities } from '../../../src/domain/selection';
import { fixtures, readFixtureRollouts } from '../../support/fixture-rollouts';
import { readTruth } from '../../support/fixture-truth';
import { referenceLabels } from '../../support/reference-labels';
import { scoreAnalysis } from '../../support/score-analysis';

const SHOP = 'shop-rollouts/base';
const RETAIL = 'tau2-retail/rollouts';
const rule = selectionRuleSchema.parse({ passes: 1, votes: 1 });

test.each([SHOP, RETAIL])('%s: exactly what was planted is lacking by the rule of selection', (name) => {
  const [fixture, truth] = [readFixtureRollouts(name), readTruth(name)];
  expect(new Set(fixture.rollouts.map(({ key }) => key)).size).toBe(fixture.rollouts.length);
  expect(fixture.rollouts.length).toBeGreaterThanOrEqual(90);
  const selection = selectCapabilities({ passes: [referenceLabels({ ...fixture, truth })], rule });
  const selected = selection.capabilities.filter((one) => one.selected).map((one) => one.name);
  expect(selected.sort()).toEqual([...truth.planted].sort());
});

test('a mistake fails the rollout, none passes it, and no analyst can read which it was', () => {
  const { rollouts, description } = readFixtureRollouts(RETAIL);
  const made = readTruth(RETAIL).rollouts!;
  const mistakes = Object.values(made).flatMap(({ mistake }) => mistake ?? []);
  for (const { task, attempt, reward, messages } of rollouts) {
    expect([task, attempt, reward === 1]).toEqual([task, attempt, made[`${task} ${attempt}`]!.mistake === null]);
    expect(messages[0]).toEqual({ role: 'system', content: expect.stringContaining(description.policy) });
  }
  const text = readFileSync(join(fixtures, `${RETAIL}.jsonl`), 'utf8');
  expect([...mistakes, 'planted'].filter((word) => text.includes(word))).toEqual([]);
});

describe('the score of an analysis', () => {
  const reference = referenceLabels({ ...readFixtureRollouts(RETAIL), truth: readTruth(RETAIL) });
  const { planted } = readTruth(RETAIL);
  /** The reference's labels, under other names. */
  const renamed = (mapping: Record<string, string>): LabelPass => ({
    ...reference,
    labels: Object.fromEntries(Object.entries(mapping).map(([skill, name]) => [name, reference.labels[skill]!])),
  });
  const score = (names: Record<string, string>, mapping: Record<string, string[]>) => {
    const passes = [renamed(names)];
    return scoreAnalysis({
      mapping,
      planted,
      passes,
      selection: selectCapabilities({ passes, rule }),
      reference,
      rule,
    });
  };

  test('is perfect where labels and selection are', () => {
    const found = Object.fromEntries(planted.map((skill) => [skill, `found_${skill}`]));
    const mapping = Object.fromEntries(planted.map((skill) => [skill, [`found_${skill}`]]));
    const { precision, recall, capabilities } = score(found, mapping);
    expect([precision, recall]).toEqual([1, 1]);
    for (const one of Object.values(capabilities))
      expect(one).toMatchObject({
        selected: true,
        agreement: 1,
        agreementLacking: 1,
        lackingFound: 1,
        lackingRight: 1,
      });
  });

  test('counts what is missed, what is mistaken, and labels that belong to another skill', () => {
    const found = { confirm_first: 'finish_all_requests', keep_working: 'keep_going_on' };
    const mapping = { complete_all: ['finish_all_requests'], keep_working: [] };
    const { precision, recall, missed, mistaken, capabilities } = score(found, mapping);
    expect([precision, recall]).toEqual([0.5, 0.25]);
    expect(missed).toEqual(planted.filter((skill) => skill !== 'complete_all'));
    expect(mistaken).toEqual(['keep_going_on']);
    expect(capabilities['finish_all_requests']).toMatchObject({ skill: 'complete_all', lackingFound: 0 });
    expect(capabilities['finish_all_requests']!.agreement).toBeLessThan(0.5);
  });
});

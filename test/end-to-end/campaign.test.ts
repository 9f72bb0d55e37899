/** A small campaign for real: Temporal, policy server, workers, trainer, report. First undisturbed, then with faults (`make test-faults` has more). */
import { figuresIn } from '../../src/domain/artifacts';
import { cancelledTraining } from '../faults/scenarios/cancels';
import { paidShort } from '../faults/scenarios/paid';
import { short } from '../faults/scenarios/short';
import { referenceOf, runScenario } from '../support/faults-scenario';
import { sample } from '../support/sample';

jest.setTimeout(30 * 60_000);

test('left alone, every stage leaves its part of the report; figures lead to artifacts, and the same command again makes nothing', async () => {
  const { violations, report } = await referenceOf(short.file);
  expect(violations).toEqual([]);
  expect(report).toMatchObject({
    campaign: { status: 'completed' },
    selection: { candidates: [{ selected: true }] },
    capabilities: [{ status: 'completed', training: { steps: 6 } }],
    leakage: { passed: true },
    rollouts: { broken: { value: 0 } },
  });
  const arms = report.arms?.map(({ name }) => name);
  expect(arms).toEqual(expect.arrayContaining(['base', 'trace', 'oracle', 'grpo_target']));
  expect(figuresIn(report).length).toBeGreaterThan(30);
});

test.each(sample([short, cancelledTraining, paidShort], 1))('$name', async (scenario) => {
  const { violations } = await runScenario(scenario);
  expect(violations).toEqual([]);
});

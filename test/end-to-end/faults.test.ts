/** The short form of the fault tests, on a small campaign (`make test-faults` is the long one): docs/development.md. */
import { referenceOf, runScenario } from '../support/faults-scenario';
import { paidShort } from '../faults/scenarios/paid';
import { short } from '../faults/scenarios/short';

jest.setTimeout(30 * 60_000);

test('a campaign that is left alone', async () => {
  const { violations } = await referenceOf(short.file);
  expect(violations).toEqual([]);
});

test.each([short, paidShort])('$name', async (scenario) => {
  const { violations } = await runScenario(scenario);
  expect(violations).toEqual([]);
});

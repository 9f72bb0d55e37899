/** The short form of the fault tests, on a small campaign (`make test-faults` is the long one): docs/faults.md. */
import { referenceOf, runScenario } from '../support/faults-scenario';
import { short } from '../faults/scenarios/short';

jest.setTimeout(30 * 60_000);

test('a campaign that is left alone', async () => {
  const { violations } = await referenceOf(short.file);
  expect(violations).toEqual([]);
});

test(short.name, async () => {
  const { violations } = await runScenario(short);
  expect(violations).toEqual([]);
});

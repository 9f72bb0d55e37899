/** Real campaigns that are disturbed in every way that docs/development.md lists (`make test-faults`, `make test-faults ONLY=regexp`). */
import { faultSeed } from '../support/faults-random';
import { referenceOf, removeTemplates, runScenario } from '../support/faults-scenario';
import { scenarios } from './scenarios';

const only = process.env['ONLY'] ? new RegExp(process.env['ONLY']) : undefined;
const chosen = scenarios.filter(({ name }) => only?.test(name) ?? true);
const outcomes: string[] = [];

jest.setTimeout(60 * 60_000);
afterAll(async () => {
  await removeTemplates();
  console.log([`FAULT_SEED=${faultSeed}`, ...outcomes].join('\n'));
});

if (chosen.length === 0) throw new Error(`ONLY=${process.env['ONLY']}: no scenario has such a name`);

describe.each([...new Set(chosen.map(({ file }) => file))])('%s', (file) => {
  const onFile = chosen.filter((one) => one.file === file);
  if (onFile.some(({ alone }) => !alone))
    it('left alone', async () => {
      const { violations } = await referenceOf(file);
      expect(violations).toEqual([]);
    });

  for (const scenario of onFile) {
    const reason = scenario.unable?.();
    if (reason) console.warn(`skipped: ${scenario.name}: ${reason}`);
    (reason ? it.skip : it)(scenario.name, async () => {
      const { violations, text } = await runScenario(scenario);
      outcomes.push(text);
      expect(violations).toEqual([]);
    });
  }
});

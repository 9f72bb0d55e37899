/**
 * Campaigns again and again, each disturbed by a random mixture of its own seed (`make soak`, `make soak SECONDS=600 FAULT_SEED=7`). Ends at
 * the first violation and says which seed draws the same mixture again.
 */
import { faultSeed, randomOf } from '../support/faults-random';
import { referenceOf, runScenario } from '../support/faults-scenario';
import { mixtures } from './scenarios/mixture';

const DEFAULT_SECONDS = 3600;

async function soak(seconds: number): Promise<number> {
  const end = Date.now() + seconds * 1000;
  for (let seed = faultSeed; seed === faultSeed || Date.now() < end; seed++) {
    // Of the seed alone, so that the first campaign of another run with this seed is the same.
    const scenario = randomOf('soak', seed).pick(mixtures);
    const reference = await referenceOf(scenario.file);
    const violations = [...reference.violations, ...(await runScenario(scenario, seed)).violations];
    if (violations.length === 0) continue;
    console.error(violations.join('\n'));
    console.error(`make soak SECONDS=1 FAULT_SEED=${seed} does the same again`);
    return 1;
  }
  return 0;
}

const seconds = Number(process.argv[2] ?? DEFAULT_SECONDS);
if (!(seconds > 0)) throw new Error(`SECONDS=${process.argv[2]}: give a number above 0`);
void soak(seconds).then((code) => process.exit(code));

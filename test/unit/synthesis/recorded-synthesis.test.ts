/** Environments from recorded replies of a language model pass the self-test. */
import { kindOf } from '../../../src/domain/kinds';
import { SELF_TEST_CPU_MS } from '../../../src/sandbox/limits';
import { selfTest } from '../../../src/sandbox/self-test';
import { synthesizers } from '../../../src/synthesis';
import { discoverRecorded, readEvaluation, withRecorded } from '../../support/analyse-recorded';
import { sample } from '../../support/sample';

const ROUNDS = 5;
/** A busy machine counts more seconds for the same work. */
const cpuMs = 10 * SELF_TEST_CPU_MS;

const recorded = ['shop-base', 'tau2-retail'].flatMap((set) =>
  readEvaluation(set).environments.map((name) => ({ set, name })),
);
const environments = sample(recorded, 1);

it.each(environments)('$set: $name', async ({ set, name }) => {
  const { input, discovery } = await discoverRecorded(set);
  const candidate = discovery.candidates.find((one) => one.name === name)!;
  const others = discovery.candidates.filter((one) => one !== candidate);
  await withRecorded(set, async ({ spec, work }) => {
    const synthesizer = await kindOf(synthesizers, spec).open(spec, undefined);
    const target = { ...input, ...work, candidate, others, forbidden: [] };
    let module = await synthesizer.write(target);
    let { findings } = await selfTest({ source: module.source, cpuMs });
    for (let round = 2; round <= ROUNDS && findings.length > 0; round++) {
      const previous = { source: module.source, findings };
      module = await synthesizer.revise({ ...target, round, previous });
      ({ findings } = await selfTest({ source: module.source, cpuMs }));
    }
    expect(findings).toEqual([]);
  });
});

/** The analyst's promise in `shop`: for every planting of up to three skills, exactly their capabilities are selected. */
import { errorClassOf, type ErrorClass } from '../../../examples/shop/rules/errors';
import { rules } from '../../../examples/shop/rules/rules';
import { selectionRuleSchema } from '../../../src/domain/campaign';
import { selectCapabilities } from '../../../src/domain/selection';
import { createShop } from '../../../examples/shop/target/shop';
import { type Skill, SKILLS } from '../../../examples/shop/target/tasks';
import { noLedger } from '../../support/memory-ledger';
import { rollouts } from '../analyst/simulation';

const analyst = rules.open({ kind: 'rules' }, undefined);

const classOf: Record<Skill, ErrorClass> = {
  complete_all: 'omitted_action',
  refuse: 'forbidden_action',
  choose: 'wrong_candidate',
  tell: 'untold_information',
  compute: 'wrong_value',
  ask: 'invented_identifier',
};

const plantings = Array.from({ length: 2 ** SKILLS.length }, (_, bits) =>
  SKILLS.filter((_, i) => bits & (2 ** i)),
).filter(({ length }) => length >= 1 && length <= 3);

async function selectedClasses(lacks: readonly Skill[], noise: number): Promise<string[]> {
  const rule = selectionRuleSchema.parse({});
  const description = await createShop().describe();
  const made = await rollouts({ lacks, seed: 11, noise });
  const work = { progress: () => {}, signal: new AbortController().signal, ledger: noLedger };
  const input = { rollouts: made, description, ...work };
  const { candidates } = await analyst.discover({ ...input, quotable: new Set(), rule, seed: 11 });
  const passes = await Promise.all(
    Array.from({ length: rule.passes }, (_, pass) => analyst.label({ ...input, candidates, pass, seed: 11 })),
  );
  const selected = selectCapabilities({ passes, rule }).capabilities.filter((one) => one.selected);
  return selected.map(({ name }) => errorClassOf(name) ?? name).sort();
}

describe('planted lacks are what is selected', () => {
  it.each(plantings.map((lacks, i) => [lacks.join(' '), lacks, i % 2 === 0 ? 0.02 : 0.05] as const))(
    '%s',
    async (_, lacks, noise) => {
      expect(await selectedClasses(lacks, noise)).toEqual(lacks.map((skill) => classOf[skill]).sort());
    },
    30_000,
  );
});

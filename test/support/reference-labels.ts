/**
 * Known labels of a fixture's rollouts, by skill: from the mistakes that a script made, else from comparing each trajectory with its reference as
 * the analyst by rules does.
 */
import { passFrom } from '../../src/analyst/analyst';
import type { ErrorClass } from '../../examples/shop/rules/errors';
import { errorLabels } from '../../examples/shop/rules/errors';
import { toolKnowledge } from '../../examples/shop/rules/tools';
import type { Label, LabelPass } from '../../src/domain/capability';
import type { ScoredRollout } from '../../src/domain/rollout';
import { policyRulesOf } from '../../examples/shop/policy-rules';
import type { Skill } from '../../examples/shop/target/tasks';
import type { FixtureRollouts } from './fixture-rollouts';
import type { Truth } from './fixture-truth';

const classOf: Record<Skill, ErrorClass> = {
  complete_all: 'omitted_action',
  refuse: 'forbidden_action',
  choose: 'wrong_candidate',
  tell: 'untold_information',
  compute: 'wrong_value',
  ask: 'invented_identifier',
};

/** One labeling pass over all rollouts; the skills stand where capabilities do. */
export function referenceLabels({ rollouts, description, truth }: FixtureRollouts & { truth: Truth }): LabelPass {
  const { rollouts: made } = truth;
  if (made) {
    const label = (rollout: ScoredRollout, skill: string): Label => {
      const known = made[`${rollout.task} ${rollout.attempt}`];
      if (!known)
        throw new Error(`truth.json knows nothing of ${rollout.task} ${rollout.attempt}: make the fixture anew`);
      return known.mistake === skill ? 'LACKING' : known.shown.includes(skill) ? 'PRESENT' : 'NA';
    };
    const skills = Object.values(made).flatMap(({ mistake, shown }) =>
      mistake === null ? shown : [mistake, ...shown],
    );
    return passFrom({ attempt: 'reference', rollouts, names: [...new Set(skills)].sort(), labelOf: label });
  }
  const knowledge = toolKnowledge(description.tools);
  const denials = policyRulesOf(description).flatMap((rule) => (rule.kind === 'precondition' ? [rule.denial] : []));
  const labels = new Map(
    rollouts.map((rollout) => [rollout.key, errorLabels({ rollout, knowledge, denials })] as const),
  );
  return passFrom({
    attempt: 'reference',
    rollouts,
    names: Object.keys(classOf),
    labelOf: ({ key }, skill) => labels.get(key)![classOf[skill as Skill]],
  });
}

/** Environments from recorded replies of a language model pass the self-test, and their rewards distinguish policies that are right to a degree. */
import { discoverRecorded, readEvaluation } from '../../support/analyse-recorded';
import { gradeModule } from '../../support/graded-policies';
import { writeRecorded } from '../../support/write-recorded';

jest.setTimeout(300_000);

const SEEDS = 40;
/** The highest mean reward of a policy that does nothing. */
const NOTHING = 0.1;

const environments = ['shop-base', 'tau2-retail'].flatMap((set) =>
  readEvaluation(set).environments.map((name) => ({ set, name })),
);

it.each(environments)('$set: $name', async ({ set, name }) => {
  const target = await discoverRecorded({ set });
  const lacking = target.discovery.candidates;
  const [written] = (await writeRecorded({ set, target, lacking, only: [name] })).environments;
  expect(written?.rounds.at(-1)?.findings).toEqual([]);

  const { ladder, flawed } = await gradeModule({ source: written!.module!.source, seeds: SEEDS });
  const rewards = ladder.map(({ reward }) => reward);
  expect(rewards[0]).toBeLessThanOrEqual(NOTHING);
  expect(rewards.at(-1)).toBe(1);
  // The mean reward rises with the share of seeds that are solved.
  for (const [n, reward] of rewards.slice(1).entries()) expect(reward).toBeGreaterThan(rewards[n]!);
  // Within an episode, a solution with one mistake gets more than nothing and less than the whole.
  const between = flawed.filter(({ reward }) => reward > rewards[0]! && reward < 1);
  expect(between.length).toBeGreaterThanOrEqual(2);
  const byWrites = flawed.filter(({ policy }) => /^the first|^looks up/.test(policy)).map(({ reward }) => reward);
  expect(byWrites).toEqual([...byWrites].sort((a, b) => a - b));
});

/** The modules that a language model wrote tell policies apart that are right to a degree: docs/results.md has the figures. */
import { readFileSync } from 'node:fs';
import { gradeModule } from '../../support/graded-policies';
import { keptModules } from '../../support/recorded-set';

const SEEDS = 40;
/** What a policy may get that does nothing. */
const NOTHING = 0.1;

it.each(keptModules())(
  '$name',
  async ({ file }) => {
    const { ladder, flawed } = await gradeModule({ source: readFileSync(file, 'utf8'), seeds: SEEDS });
    const rewards = ladder.map(({ reward }) => reward);
    expect(rewards[0]).toBeLessThanOrEqual(NOTHING);
    expect(rewards.at(-1)).toBe(1);
    // The more of it is solved, the higher the mean reward.
    for (const [n, reward] of rewards.slice(1).entries()) expect(reward).toBeGreaterThan(rewards[n]!);
    // Within an episode too: what is nearly right gets more than nothing and less than the whole.
    const between = flawed.filter(({ reward }) => reward > rewards[0]! && reward < 1);
    expect(between.length).toBeGreaterThanOrEqual(2);
    const byWrites = flawed.filter(({ policy }) => /^the first|^looks up/.test(policy)).map(({ reward }) => reward);
    expect(byWrites).toEqual([...byWrites].sort((a, b) => a - b));
  },
  60_000,
);

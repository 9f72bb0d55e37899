/** Step 4 of the method: fits the router on the outcome matrix of the train split. What it chooses is found out inside rollouts. */
import { digest } from '../artifacts/hash';
import type { ArtifactRef } from '../domain/artifacts';
import { kindOf } from '../domain/kinds';
import { openingOf } from '../domain/messages';
import { SUCCESS } from '../domain/rollout';
import { readOutcomes, readScored } from '../rollout/read';
import { fitSchema, type FitInput, type FittedRouter } from '../routing/router';
import { keptJson, working, type PolicyDependencies } from './context';
import type { RolloutActivities } from './types';

export function createFitRouter({
  store,
  kinds,
  python,
  client,
}: PolicyDependencies): Pick<RolloutActivities, 'fitRouter'> {
  return {
    async fitRouter({ router: spec, definitions, outcomes, seed }) {
      const router = kindOf(kinds.routers, spec).open(spec, { python, client });
      const maker = router.identity;
      const options = outcomes.map(({ option, policy }) => ({ name: option, policy }));
      const batches = outcomes.map(({ rollouts }) => rollouts);
      const key = `router/${digest({ maker, options, batches, definitions, seed })}`;
      const inputs = [...batches, ...options.flatMap(({ policy }) => policy.adapters.map(({ ref }) => ref))];
      const ref = await keptJson(store, { key, producer: 'fitRouter', inputs }, async (): Promise<FittedRouter> => {
        const tasks = await outcomeMatrix(outcomes);
        const fit = fitSchema.parse(
          await router.fit({ options, tasks, ...(definitions && { definitions }), seed, ...working('fit the router') }),
        );
        return { maker, options, ...fit };
      });
      return { router: ref };
    },
  };

  /** Tasks that every option has scored rollouts of, with their successes. */
  async function outcomeMatrix(outcomes: { option: string; rollouts: ArtifactRef }[]): Promise<FitInput['tasks']> {
    const tasks = new Map<string, FitInput['tasks'][number]>();
    for (const { option, rollouts: ref } of outcomes) {
      const scored = (await readOutcomes({ store, ref })).filter((outcome) => outcome.status === 'scored');
      // Of the options together each task's opening is read once, with the first batch that has it.
      if (scored.some(({ task }) => !tasks.has(task)))
        for (const { task: id, messages } of await readScored({ store, ref }))
          if (!tasks.has(id)) tasks.set(id, { id, messages: openingOf(messages), outcomes: {} });
      for (const { task, reward } of scored) (tasks.get(task)!.outcomes[option] ??= []).push(reward >= SUCCESS ? 1 : 0);
    }
    return [...tasks.values()].filter((task) => outcomes.every(({ option }) => task.outcomes[option]));
  }
}

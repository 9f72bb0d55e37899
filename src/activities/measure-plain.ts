/** Measures what policies answer to plain requests: length, repetition, and how likely the base model finds it. */
import { Context } from '@temporalio/activity';
import { digest } from '../artifacts/hash';
import type { ArtifactRef } from '../domain/artifacts';
import { distinctRuns, type PlainMeasure, type PlainMeasures } from '../domain/plain';
import type { FixedPolicy, ScoredRollout } from '../domain/rollout';
import { mean } from '../domain/statistics';
import { readScored } from '../rollout/read';
import { keptJson, working, type PolicyDependencies } from './context';
import type { RolloutActivities } from './types';

/** Requests to the policy server at once. */
const AT_ONCE = 16;

export function createMeasurePlain({ store, client }: PolicyDependencies): Pick<RolloutActivities, 'measurePlain'> {
  return {
    async measurePlain({ base, batches }) {
      const refs = batches.map(({ rollouts }) => rollouts);
      const key = `plain/${digest({ base, batches })}`;
      return keptJson(store, { key, producer: 'measurePlain', inputs: refs }, () => measureAll(base, batches));
    },
  };

  async function measureAll(
    base: string,
    batches: readonly { name: string; rollouts: ArtifactRef }[],
  ): Promise<PlainMeasures> {
    const { progress } = working('measure plain answers');
    const read = await Promise.all(
      batches.map(async ({ name, rollouts: ref }) => ({ name, rollouts: await readScored({ store, ref }) })),
    );
    const total = read.reduce((sum, { rollouts }) => sum + rollouts.length, 0);
    let done = 0;
    const measures: PlainMeasures = {};
    for (const { name, rollouts } of read) {
      const found: PlainMeasure[] = [];
      for (let from = 0; from < rollouts.length; from += AT_ONCE) {
        const some = rollouts.slice(from, from + AT_ONCE);
        found.push(...(await Promise.all(some.map((rollout) => measureOne({ base, adapters: [] }, rollout)))));
        progress((done += some.length), total);
      }
      measures[name] = found;
    }
    return measures;
  }

  async function measureOne(base: FixedPolicy, { task, messages, rows }: ScoredRollout): Promise<PlainMeasure> {
    const text = messages.flatMap(({ role, content }) => (role === 'assistant' ? [content] : [])).join('\n');
    const { promptIds = [], completionIds = [] } = rows[0] ?? {};
    const measure = { task, tokens: completionIds.length, distinct: distinctRuns(text) };
    if (completionIds.length === 0) return measure;
    const { cancellationSignal: signal } = Context.current();
    const logprobs = await client.score({ policy: base, ids: [...promptIds, ...completionIds], signal });
    return { ...measure, baseLogprob: Math.min(0, mean(logprobs.slice(promptIds.length - 1))) };
  }
}

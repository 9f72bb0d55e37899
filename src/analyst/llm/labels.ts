/**
 * One labeling pass over all scored rollouts. All passes ask the same, byte for byte, and differ by their seed alone; every failed trajectory has a
 * beginning at a message that was shown; a pass is whole or it fails.
 */
import { seedOf } from '../../artifacts/hash';
import type { LabelPass } from '../../domain/capability';
import { type LabelInput, passFrom } from '../analyst';
import { type Labeled, readLabels } from './answers';
import { askAll, type Config, labelChunks, labelRequest, promptOf, readable, shownOf } from './requests';

export async function label(config: Config, input: LabelInput): Promise<LabelPass> {
  const names = input.candidates.map(({ name }) => name);
  const all = shownOf(input.rollouts);
  const request = labelRequest(input);
  const answers = await askAll({
    config,
    step: 'labels',
    work: input,
    seed: seedOf(`llm labels ${input.seed} ${input.pass}`),
    items: names.length > 0 ? labelChunks(config, request, all) : [],
    messages: (shown) => promptOf(config, request, shown),
    read: (text, shown) => readLabels({ text, shown, names }),
  });

  const labeled = new Map(answers.flatMap((answer) => [...answer]));
  const byKey = new Map([...all].map(([id, { key }]) => [key, { id, ...labeled.get(id) }]));
  /** What there is, by trajectory, with the reason in words for people. */
  const reasoned = <Value extends { reason: string }>(of: (one: Partial<Labeled>) => Value | undefined) =>
    Object.fromEntries(
      [...byKey].flatMap(([key, one]) => {
        const value = of(one);
        return value ? [[key, { ...value, reason: readable(value.reason, all, one.id) }]] : [];
      }),
    );
  return {
    ...passFrom({
      attempt: input.pass,
      rollouts: [...all.values()].sort((a, b) => (a.key < b.key ? -1 : 1)),
      names,
      labelOf({ key }, name) {
        const { failure, labels } = byKey.get(key) ?? {};
        // A failure that is not the agent's says nothing of any capability.
        return failure && failure.of !== 'agent' ? 'NA' : labels?.get(name);
      },
    }),
    reasons: Object.fromEntries(names.map((name) => [name, reasoned(({ reasons }) => reasons?.get(name))])),
    failures: reasoned(({ failure }) => failure),
  };
}

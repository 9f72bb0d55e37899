/**
 * One labeling pass over all scored rollouts. Invariants: all passes ask the same, byte for byte, and differ by their seed alone; every failed
 * trajectory has a beginning at a message that was shown; a pass is whole or it fails.
 */
import { seedOf } from '../../artifacts/hash';
import type { LabelPass } from '../../domain/capability';
import { answerOf } from '../../language-model/answer';
import { type LabelInput, passFrom } from '../analyst';
import { type Labeled, readLabels } from './answers';
import { askAll, type Config, labelChunks, labelRequest, promptOf, readable, shownOf } from './requests';

export async function label(config: Config, input: LabelInput): Promise<LabelPass> {
  const { rollouts, candidates, pass } = input;
  const names = candidates.map(({ name }) => name);
  const all = shownOf(rollouts);
  const request = labelRequest(input);
  const seed = seedOf(`llm labels ${input.seed} ${pass}`);
  const answers = await askAll({
    items: names.length > 0 ? labelChunks(config, request, all) : [],
    step: 'labels',
    work: input,
    ask: (shown, asking) => {
      const read = (text: string) => readLabels({ text, shown, names });
      return answerOf({ ...config, messages: promptOf(config, request, shown), seed, read, asking });
    },
  });

  const byId = new Map(answers.flatMap((answer) => [...answer]));
  const labeled = [...all]
    .sort(([, a], [, b]) => (a.key < b.key ? -1 : 1))
    .flatMap(([id, { key }]) => {
      const given = byId.get(id);
      return given ? [{ key, given, forPeople: (reason: string) => readable(reason, all, id) }] : [];
    });
  const byKey = new Map(labeled.map(({ key, given }) => [key, given]));
  const reasonsFor = (name: string) =>
    labeled.flatMap(({ key, given, forPeople }) => {
      const own = given.labels.get(name);
      if (!own) return [];
      const { reason, message } = own;
      return [[key, { reason: forPeople(reason), ...(message !== undefined && { message }) }] as const];
    });
  const failures = labeled.flatMap(({ key, given: { failure }, forPeople }) =>
    failure ? [[key, { ...failure, reason: forPeople(failure.reason) }] as const] : [],
  );
  return {
    ...passFrom({
      attempt: pass,
      rollouts: [...all.values()].sort((a, b) => (a.key < b.key ? -1 : 1)),
      names,
      labelOf: ({ key }, name) => labelIn(name, byKey.get(key)),
    }),
    reasons: Object.fromEntries(names.map((name) => [name, Object.fromEntries(reasonsFor(name))])),
    failures: Object.fromEntries(failures),
  };
}

/** What is not the agent's says nothing of any capability. */
const labelIn = (name: string, given?: Labeled) =>
  given?.failure && given.failure.of !== 'agent' ? 'NA' : given?.labels.get(name)?.label;

/**
 * One labeling pass over all scored rollouts. Invariants: all passes ask the same, byte for byte, and differ by their seed alone; a pass is
 * whole or it fails.
 */
import type { Label, LabelPass } from '../../domain/capability';
import { compact, shortIds } from '../../domain/transcript';
import { isSuccess, type ScoredRollout } from '../../domain/rollout';
import { seedOf } from '../../artifacts/hash';
import { answerOf } from '../../language-model/answer';
import type { LabelInput } from '../analyst';
import { contrastChunks } from './chunks';
import { isAgents, readLabels, type Labeled } from './label-answer';
import { partsAtTasks } from './parts';
import { askAll, byShortId, readable, roomIn, targetText, type Means } from './request';

export async function label(means: Means, input: LabelInput): Promise<LabelPass> {
  const { rollouts, description, candidates, pass, ledger } = input;
  const names = candidates.map(({ name }) => name);
  const ids = shortIds(rollouts);
  const capabilities = candidates.map(({ name, definition }) => `- ${name}: ${definition}`).join('\n');
  const values = { ...targetText(description), capabilities };
  const room = roomIn(means, 'label', { ...values, trajectories: '', ids: '' });
  const chunks = contrastChunks({ ...means, rollouts, ids, tokens: means.chunkTokens, room }).flatMap((chunk) =>
    partsAtTasks(chunk, means.labelsPerChunk),
  );
  const seed = seedOf(`llm labels ${input.seed} ${pass}`);
  const labeled = await askAll({
    items: names.length > 0 ? chunks : [],
    step: 'labels',
    ledger,
    work: input,
    ask: (chunk, asking) => {
      const shown = byShortId(chunk, ids);
      const trajectories = compact({ rollouts: chunk, ids, lengths: means.lengths });
      return answerOf({
        ...means,
        messages: means.prompts.render('label', { ...values, trajectories, ids: [...shown.keys()].join(', ') }),
        seed,
        read: (text) => readLabels({ text, rollouts: shown, names }),
        asking,
      });
    },
  });
  const byId = new Map(labeled.flatMap((one) => [...one]));
  return passOf({ pass, names, rollouts: [...rollouts].sort((a, b) => (a.key < b.key ? -1 : 1)), ids, byId });
}

function passOf(o: {
  pass: number;
  names: readonly string[];
  rollouts: readonly ScoredRollout[];
  ids: ReadonlyMap<string, string>;
  byId: ReadonlyMap<string, Labeled>;
}): LabelPass {
  const known = byShortId(o.rollouts, o.ids);
  const labeled = [...known].map(([id, rollout]) => ({
    key: rollout.key,
    passed: isSuccess(rollout),
    given: o.byId.get(id),
    told: (reason: string) => readable(reason, known, id),
  }));
  // A trajectory without an answer gets into no list, which is no partition then.
  const labelIn = (name: string, given?: Labeled) =>
    given && !isAgents(given) ? 'NA' : given?.labels.get(name)?.label;
  const keys = (name: string, label: Label, passed: boolean) =>
    labeled.filter((one) => one.passed === passed && labelIn(name, one.given) === label).map(({ key }) => key);
  return {
    attempt: o.pass,
    totals: {
      total_failed: labeled.filter(({ passed }) => !passed).length,
      total_passed: labeled.filter(({ passed }) => passed).length,
    },
    labels: Object.fromEntries(
      o.names.map((name) => [
        name,
        {
          lacking_failed: keys(name, 'LACKING', false),
          present_failed: keys(name, 'PRESENT', false),
          na_failed: keys(name, 'NA', false),
          lacking_passed: keys(name, 'LACKING', true),
          present_passed: keys(name, 'PRESENT', true),
          na_passed: keys(name, 'NA', true),
        },
      ]),
    ),
    reasons: Object.fromEntries(
      o.names.map((name) => {
        const reasons = labeled.flatMap(({ key, given, told }) => {
          const own = given?.labels.get(name);
          if (!own) return [];
          const { reason, message } = own;
          return [[key, { reason: told(reason), ...(message !== undefined && { message }) }] as const];
        });
        return [name, Object.fromEntries(reasons)];
      }),
    ),
    failures: Object.fromEntries(
      labeled.flatMap(({ key, given, told }) =>
        given?.failure ? [[key, { ...given.failure, reason: told(given.failure.reason) }] as const] : [],
      ),
    ),
  };
}

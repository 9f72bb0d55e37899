/** Hints in the engine: who is hinted, what the policy sees, and that nothing of it is trained on. */
import type { ArtifactStore } from '../../../src/artifacts/store';
import type { Environment } from '../../../src/domain/environment';
import type { Message } from '../../../src/domain/messages';
import type { Prompt, ScoredRollout } from '../../../src/domain/rollout';
import type { TurnRequest } from '../../../src/policy/wire';
import type { RollOutOptions } from '../../../src/rollout/engine';
import { played } from '../../support/played';
import { type RowsRollout, trainingBatch } from '../../../src/rollout/training-batch';
import { countingBatch } from '../../support/counting-batch';
import { temporaryStore } from '../../support/temporary-store';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';

const HINT = 'count as far as you are told .';
let store: ArtifactStore;
temporaryStore((made) => (store = made));

/** Gives a hint at the tasks that `at` names, all unless told. */
function hinting(system: string[] = ['count'], at: (task: string) => boolean = () => true): Environment {
  const environment = countingEnvironment({ system });
  return {
    ...environment,
    reset: async (task) => {
      const episode = await environment.reset(task);
      return at(task.id) ? { ...episode, start: { ...episode.start, hint: HINT } } : episode;
    },
  };
}

async function made(changes: Partial<RollOutOptions>): Promise<ScoredRollout[]> {
  const { records } = await played(countingBatch(store, { environment: hinting(), attempts: 4, ...changes }));
  return records as ScoredRollout[];
}

const systemOf = (messages: readonly Message[]) =>
  messages.filter(({ role }) => role === 'system').map(({ content }) => content);

test('the first attempts at each task are hinted, and no key of the others depends on it', async () => {
  const plain = await made({});
  const keys = new Set(plain.map(({ key }) => key));
  for (const [share, hintedAttempts] of [
    [0, []],
    [0.5, [0, 1]],
    [0.6, [0, 1]],
    [1, [0, 1, 2, 3]],
  ] as const) {
    const { records, reused } = await played(
      countingBatch(store, { environment: hinting(), attempts: 4, hints: { share } }),
    );
    const scored = records as ScoredRollout[];
    for (const task of ['n-0', 'n-1', 'n-2'])
      expect(scored.flatMap((r) => (r.task === task && r.hinted ? [r.attempt] : []))).toEqual(hintedAttempts);
    expect(scored.map(({ key, hinted = false }) => [keys.has(key), hinted])).toEqual(
      scored.map(({ hinted = false }) => [!hinted, hinted]),
    );
    if (share === 0.5) expect(reused).toBe(6);
  }
});

test.each([
  [
    ['count', 'well'],
    [`count\n\n${HINT}`, 'well'],
  ],
  [[], [HINT]],
])(
  'the policy reads the hint after system messages %j in every turn; the record is without it',
  async (system, shown) => {
    const seen: TurnRequest[] = [];
    const client = countingPolicy((request) => void (request.sampling.maxTokens > 1 && seen.push(request)));
    const [rollout] = await made({
      environment: hinting(system),
      client,
      tasks: ['n-2'],
      attempts: 1,
      hints: { share: 1 },
    });
    expect(seen).toHaveLength(4);
    for (const { messages } of seen) expect(systemOf(messages)).toEqual(shown);
    expect(systemOf(rollout!.messages)).toEqual(system);
    expect(JSON.stringify(rollout)).not.toContain(HINT);
  },
);

test.each<(Prompt | undefined)[]>([[undefined], [{ text: 'be exact', place: 'before' }]])(
  'a hinted rollout trains on the very rows that its answers would have had without the hint (own prompt: %j)',
  async (prompt) => {
    const policy = { base: 'base', adapters: [], ...(prompt && { prompt }) };
    // The policy answers by the user's words alone.
    const plain = await made({ environment: hinting(undefined, () => false), policy });
    const hinted = await made({ hints: { share: 1 }, policy });
    expect(hinted.map(({ hinted }) => hinted)).toEqual(plain.map(() => true));
    expect(plain.some((rollout) => 'hinted' in rollout)).toBe(false);
    expect(hinted.map(({ rows }) => rows)).toEqual(plain.map(({ rows }) => rows));
    expect(hinted.map(({ messages }) => messages)).toEqual(plain.map(({ messages }) => messages));
    expect(plain[0]!.rows).toHaveLength(1);
    // What was read is counted with the hint.
    expect(hinted[0]!.usage.promptTokens).toBeGreaterThan(plain[0]!.usage.promptTokens);
  },
);

test('in the learner’s batch, rows that were sampled under a hint are without log-probs', async () => {
  const records = await made({ hints: { share: 0.5 } });
  const rollouts = [
    ...trainingBatch({ records, tasks: ['n-1'], groupSize: 4, content: 'rows', maskReadOnlyTurns: true }),
  ] as RowsRollout[];
  expect(rollouts.map(({ rows: [row] }) => row!.logprobs === null)).toEqual([true, true, false, false]);
  expect(rollouts.map(({ rows: [row] }) => row!.mask)).toEqual(rollouts.map(() => rollouts[3]!.rows[0]!.mask));
});

test('a task without a hint is played as it is', async () => {
  const rollouts = await made({ environment: hinting(undefined, (task) => task === 'n-1'), hints: { share: 1 } });
  expect(rollouts.map(({ task, hinted = false }) => hinted === (task === 'n-1'))).toEqual(rollouts.map(() => true));
});

/** Who teaches in a student's conversations: the router's choice, with what stands for its adapters. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openTeacher } from '../../src/activities/teacher';
import { openFolderStore } from '../../src/artifacts/folder-store';
import type { ArtifactRef } from '../../src/domain/artifacts';
import type { FixedPolicy, ScoredRollout } from '../../src/domain/rollout';
import type { Opening } from '../../src/rollout/resolve';
import { trainingBatch } from '../../src/rollout/training-batch';
import { scoredRollout } from '../support/scored-rollout';

let home: string;
beforeEach(() => (home = mkdtempSync(join(tmpdir(), 'teacher-'))));
afterEach(() => rmSync(home, { recursive: true, force: true }));

const store = () => openFolderStore(join(home, 'artifacts'));
function adapter(name: string): Promise<ArtifactRef> {
  const folder = mkdtempSync(join(home, name));
  writeFileSync(join(folder, 'adapter_model.safetensors'), name);
  return store().putFolder({ key: name, producer: 'test', inputs: [], folder });
}

const row = { promptIds: [1], completionIds: [2], logprobs: [-1], turns: [{ start: 0, end: 1, readOnly: false }] };
const rollout = (task: string): ScoredRollout => ({
  ...(scoredRollout({ name: task, task, reward: 0 }) as ScoredRollout),
  rows: [row],
  messages: [
    { role: 'user', content: task },
    { role: 'assistant', content: 'said by the student' },
    { role: 'user', content: 'go on' },
  ],
});

async function taught(choose: (asked: string) => Omit<FixedPolicy, 'base'>, instead: [ArtifactRef, ArtifactRef[]][]) {
  const seen: Opening[] = [];
  const teacher = openTeacher({
    store: store(),
    resolve: async (_, opening) => {
      seen.push(opening);
      const policy = { base: 'base@1', ...choose(opening.messages[0]!.content) };
      return { policy, routed: { chosen: 'one', policy, probabilities: {} } };
    },
    teacher: {
      router: await adapter('router'),
      instead: instead.map(([{ sha256 }, refs]) => {
        return { adapter: sha256, adapters: refs.map((ref) => ({ ref, weight: 1 })) };
      }),
    },
    tools: [],
    signal: new AbortController().signal,
  });
  const records = ['a', 'b', 'c'].map(rollout);
  const teachers = await teacher(records, () => undefined);
  return { seen, records, teachers };
}

test('each conversation is taught by what its opening is routed to, in the adapters that stand for it', async () => {
  const [late, early, other, composite] = [
    await adapter('late'),
    await adapter('early'),
    await adapter('other'),
    await adapter('composite'),
  ];
  const weighted = (...parts: [ArtifactRef, number][]) => ({
    adapters: parts.map(([ref, weight]) => ({ ref, weight })),
  });
  const { seen, records, teachers } = await taught(
    (asked) => ({ a: weighted([late, 0.5]), b: weighted([composite, 1], [late, 0.5]), c: weighted() })[asked]!,
    [
      [late, [early]],
      [composite, [early, other]],
    ],
  );
  // Before the student has said anything.
  expect(seen.map(({ messages }) => messages)).toEqual(['a', 'b', 'c'].map((content) => [{ role: 'user', content }]));
  expect(new Set(seen.map(({ seed }) => seed)).size).toBe(3);
  const { groups } = trainingBatch({
    ...{ records, tasks: ['a', 'b', 'c'], groupSize: 1, content: 'rows', maskReadOnlyTurns: false },
    teachers,
  });
  const [a, b, c] = groups.map(({ rollouts: [one] }) => one && 'rows' in one && one.teacher);
  const of = async (ref: ArtifactRef, weight: number) => ({ adapter: await store().folder(ref), weight });
  expect(a).toEqual([await of(early, 0.5)]);
  // What stands there twice is added up.
  expect(b).toHaveLength(2);
  expect(b).toEqual(expect.arrayContaining([await of(early, 1.5), await of(other, 1)]));
  expect(c).toEqual([]);
});

test('an adapter that nothing stands for, and a prompt, end it', async () => {
  const unknown = await adapter('unknown');
  await expect(taught(() => ({ adapters: [{ ref: unknown, weight: 1 }] }), [])).rejects.toMatchObject({
    type: 'BadJob',
    message: `the router chose one, which holds an adapter of no capability (${unknown.uri}); distill can't learn from that`,
  });
  const prompt = { text: 'be kind', place: 'before' as const };
  await expect(taught(() => ({ adapters: [], prompt }), [])).rejects.toThrow('which has a prompt of its own');
});

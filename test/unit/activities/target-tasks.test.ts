/** Tasks of the target that a capability is trained on, by their labels. */
import { chooseTasks } from '../../../src/activities/synthesis';
import type { LabelPass } from '../../../src/domain/capability';
import { planSchema } from '../../../src/environments/split';
import { openFolderStore } from '../../../src/store/open-store';
import { readJson } from '../../../src/store/store';
import { put } from '../../support/activity-inputs';
import { failing } from '../../support/failing';
import { putRollouts, scoredRollout } from '../../support/scored-rollout';
import { temporaryFolder } from '../../support/temporary-folder';

const store = openFolderStore(temporaryFolder());
const capability = 'check_first';
type Letter = 'L' | 'P' | 'N';

/** Stores two rollouts a task and one pass for each letter of a task's word, which labels both of its rollouts. */
async function stored(words: Record<string, string>) {
  const rollouts = Object.keys(words).flatMap((task) =>
    ['a', 'b'].map((trial) => scoredRollout({ name: `${task}/${trial}`, task, reward: 0 })),
  );
  const ids = (pass: number, letter: Letter) =>
    rollouts.flatMap(({ key, task }) => (words[task]![pass] === letter ? [key] : []));
  const passes = Array.from({ length: 4 }, (_, pass): LabelPass => {
    const [lacking, present, na] = [ids(pass, 'L'), ids(pass, 'P'), ids(pass, 'N')];
    const passed = { lacking_passed: [], present_passed: [], na_passed: [] };
    const labels = { [capability]: { lacking_failed: lacking, present_failed: present, na_failed: na, ...passed } };
    return { attempt: pass, totals: { total_failed: rollouts.length, total_passed: 0 }, labels };
  });
  return {
    rollouts: await putRollouts(store, JSON.stringify(words), rollouts),
    labels: await Promise.all(passes.map((pass) => put(store, `labels/${JSON.stringify(pass)}`, JSON.stringify(pass)))),
  };
}
const named = (name: string, word: string, count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`${name}-${n}`, word]));

test('lacking ones, as many present ones, a part of both held out; mixed ones and others are left out', async () => {
  const words = {
    ...named('lacking', 'LLLP', 8),
    ...named('present', 'PPPN', 12),
    ...named('mixed', 'LLPP', 3),
    ...named('other', 'NNNL', 2),
  };
  const input = { ...(await stored(words)), capability, perStep: 4, mostHeldOut: 100, seed: 1 };
  const { plan, counts } = await chooseTasks({ store }, input);
  expect(counts).toEqual({ lacking: 8, present: 8, mixed: 3, heldOut: 4 });
  const { train, validation } = await readJson(store, plan, planSchema);
  const kinds = (tasks: string[]) => tasks.map((task) => task.split('-')[0]).sort();
  expect(kinds(train)).toEqual([...Array<string>(6).fill('lacking'), ...Array<string>(6).fill('present')]);
  expect(kinds(validation)).toEqual(['lacking', 'lacking', 'present', 'present']);
  expect(train.filter((task) => validation.includes(task))).toEqual([]);
  expect((await chooseTasks({ store }, input)).plan).toEqual(plan);
});

test('fewer than a step takes are refused, with how many there are', async () => {
  const input = { ...(await stored(named('lacking', 'LLLL', 3))), capability, perStep: 4, mostHeldOut: 100, seed: 1 };
  await expect(chooseTasks({ store }, input)).rejects.toMatchObject(failing('CannotSynthesize', 'rollouts.tasks'));
});

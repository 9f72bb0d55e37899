/** Episodes that share nothing: in turn, in each other's midst, and side by side. */
import type { Environment, Episode } from '../../domain/environment';
import type { Checked } from './checked';
import { firstDifference } from './difference';
import { play, playIn, SEED, type Played } from './playing';
import { untouched } from './start';
import { busyScript, richest } from './valid-calls';

/** As many as show what is shared; fewer of a slow environment. */
const [SIDE_BY_SIDE, OF_A_SLOW_ONE] = [8, 3];
const FIX = 'keep all state in the episode, copied afresh at reset, and draw nothing from a shared source';

export async function checkIndependence(checked: Checked): Promise<void> {
  const { environment, samples, add, attempt, hasTime } = checked;
  const { task, untouched: before } = richest(samples);
  const script = busyScript(checked);
  const played = () => play({ environment, task, script });
  const compare = (what: string, first: unknown, second: unknown): boolean => {
    const difference = firstDifference(first, second);
    if (difference !== undefined) add('step', `task ${task}, ${what}: ${difference}`, FIX);
    return difference === undefined;
  };

  await attempt('reset', () => beginAmongOpen(environment, task));
  await attempt('step (episodes in turn)', async () => {
    const first = await played();
    if (!compare('played twice in turn, is answered differently', first, await played())) return;
    const reward = await untouched({ environment, task });
    if (before && !compare('left alone after another episode has written', before, reward)) return;
    const [writing, waiting] = [
      await environment.reset({ id: task, seed: SEED }),
      await environment.reset({ id: task, seed: SEED }),
    ];
    const both: Played[] = [await playIn(writing, script), await playIn(waiting, script)];
    await Promise.all([writing.close(), waiting.close()]);
    if (!compare('played while another episode is open', first, both[0])) return;
    if (!compare('open while another episode wrote', first, both[1])) return;
    const times = hasTime() ? SIDE_BY_SIDE : OF_A_SLOW_ONE;
    const together = await Promise.all(Array.from({ length: times }, played));
    together.every((one) => compare(`played ${times} times side by side`, first, one));
  });
}

/** An id that counts the open episodes is given again once one before the last is closed. Whoever speaks to its process refuses it. */
async function beginAmongOpen(environment: Environment, task: string): Promise<void> {
  const open: Episode[] = [];
  const begin = async () => void open.push(await environment.reset({ id: task, seed: SEED }));
  try {
    await begin();
    await begin();
    await open.shift()!.close();
    await begin();
  } finally {
    for (const episode of open) await episode.close().catch(() => undefined);
  }
}

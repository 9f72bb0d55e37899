/**
 * An environment in other processes, behind the Environment interface. Invariant: an episode lives and dies with the run of the process
 * that it began in, and the next reset starts that process again.
 */
import type { Environment, EnvironmentDescription, Episode } from '../domain/environment';
import type { Partners } from '../partners/types';
import { connect, type Connection, type ProcessCommand } from './connection';
import { openEpisode, sharedId, type Held } from './process-episode';

export interface ProcessEnvironmentOptions extends ProcessCommand, Partners {
  /** Processes side by side; an episode is given to the one with the fewest. */
  processes?: number;
}

/** One run of the process, and the ids of its open episodes. */
interface Run {
  connection: Connection;
  held: Map<string, Held>;
}

interface Slot {
  run?: Run;
  episodes: number;
}

/** Starts each process on its first request. Any number of episodes may be open at once. */
export function openProcessEnvironment({
  user,
  judge,
  processes = 1,
  ...command
}: ProcessEnvironmentOptions): Environment {
  const slots = Array.from({ length: processes }, (): Slot => ({ episodes: 0 }));

  function running(slot: Slot): Run {
    if (!slot.run || slot.run.connection.failure) slot.run = { connection: connect(command), held: new Map() };
    return slot.run;
  }
  const anySlot = (): Slot => slots.reduce((least, slot) => (slot.episodes < least.episodes ? slot : least));

  async function begin(
    { connection: run, held }: Run,
    task: { id: string; seed: number },
    signal: AbortSignal | undefined,
    closed: () => void,
  ): Promise<Episode> {
    const begun = await run.request('reset', { task });
    const { episode } = begun;
    const other = held.get(episode);
    if (other) {
      other.shared = true;
      throw sharedId(run, episode);
    }
    const mine: Held = { shared: false };
    held.set(episode, mine);
    const close = () => {
      held.delete(episode);
      closed();
    };
    try {
      return await openEpisode({ run, begun, held: mine, seed: task.seed, user, judge, signal, closed: close });
    } catch (error) {
      held.delete(episode);
      await run.request('close', { episode }).catch(() => undefined);
      throw error;
    }
  }

  return {
    async describe(): Promise<EnvironmentDescription> {
      const description = await running(anySlot()).connection.request('describe', {});
      const version = [description.version, user && `user ${user.id}`, judge && `judge ${judge.id}`].filter(Boolean);
      return { ...description, version: version.join('; ') };
    },
    tasks: async (split) => (await running(anySlot()).connection.request('tasks', { split })).tasks,
    async reset(task, signal): Promise<Episode> {
      const slot = anySlot();
      slot.episodes++;
      try {
        return await begin(running(slot), task, signal, () => slot.episodes--);
      } catch (error) {
        slot.episodes--;
        throw error;
      }
    },
    async close() {
      await Promise.all(slots.map(({ run }) => run?.connection.close()));
      for (const slot of slots) delete slot.run;
    },
  };
}

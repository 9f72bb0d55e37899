/**
 * An environment in other processes, behind the Environment interface. Invariants: an episode lives and dies with the run of the
 * process that it began in, and the next reset starts that process again; the models that an environment asks for (a simulated
 * user, a judge) are called here, never in the process.
 */
import { seedOf } from '../artifacts/hash';
import type { Environment, EnvironmentDescription, Episode, Evaluation, StepResult } from '../domain/environment';
import type { AssistantMessage, Message, UserMessage } from '../domain/messages';
import { OutsideFailure } from '../domain/failures';
import type { Judge, Partners, SimulatedUser } from '../partners/types';
import { connect, type Connection, type ProcessCommand } from './connection';
import type { Result } from './protocol';

export interface ProcessEnvironmentOptions extends ProcessCommand, Partners {
  /** Processes side by side; an episode is given to the one with the fewest. */
  processes?: number;
}

interface Slot {
  connection?: Connection;
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

  function connected(slot: Slot): Connection {
    if (!slot.connection || slot.connection.failure) slot.connection = connect(command);
    return slot.connection;
  }
  const anySlot = (): Slot => slots.reduce((least, slot) => (slot.episodes < least.episodes ? slot : least));

  return {
    async describe(): Promise<EnvironmentDescription> {
      const description = await connected(anySlot()).request('describe', {});
      const version = [description.version, user && `user ${user.id}`, judge && `judge ${judge.id}`].filter(Boolean);
      return { ...description, version: version.join('; ') };
    },
    tasks: async (split) => (await connected(anySlot()).request('tasks', { split })).tasks,
    async reset(task, signal): Promise<Episode> {
      const slot = anySlot();
      slot.episodes++;
      try {
        const run = connected(slot);
        const begun = await run.request('reset', { task });
        try {
          return await openEpisode({ run, begun, seed: task.seed, user, judge, signal, closed: () => slot.episodes-- });
        } catch (error) {
          await run.request('close', { episode: begun.episode }).catch(() => undefined);
          throw error;
        }
      } catch (error) {
        slot.episodes--;
        throw error;
      }
    },
    async close() {
      await Promise.all(slots.map((slot) => slot.connection?.close()));
      for (const slot of slots) delete slot.connection;
    },
  };
}

interface Opening {
  run: Connection;
  begun: Result<'reset'>;
  seed: number;
  user: SimulatedUser | undefined;
  judge: Judge | undefined;
  signal: AbortSignal | undefined;
  closed: () => void;
}

async function openEpisode({ run, begun, seed, user, judge, signal, closed }: Opening): Promise<Episode> {
  const { episode, user: unheard, userTools = [], ...start } = begun;
  const heard: Message[] = [];
  let turn = 0;

  /** Lets the user speak, and use its tools, until it is the agent's turn again or the episode is over. */
  async function untilAgent({ user: toHear, ...result }: Result<'step'>): Promise<StepResult> {
    const messages = [...result.messages];
    let [next, last]: [Message[] | undefined, StepResult] = [toHear, result];
    while (next && !last.done) {
      heard.push(...next);
      const said = await ask(user, {
        messages: heard,
        tools: userTools,
        seed: seedOf(`user ${seed}/${turn++}`),
        ...(signal && { signal }),
      });
      const { content, toolCalls } = said;
      heard.push({ role: 'assistant', content, ...(toolCalls && { toolCalls }) });
      const { user: more, ...answered } = await run.request('step', { episode, message: said });
      messages.push(said, ...answered.messages);
      [next, last] = [more, answered];
    }
    return { ...last, messages };
  }

  const opening = await untilAgent({ messages: [], done: false, ...(unheard && { user: unheard }) });
  return {
    start: { ...start, messages: [...start.messages, ...opening.messages] },
    step: async (message: AssistantMessage) => untilAgent(await run.request('step', { episode, message })),
    async evaluate(reason): Promise<Evaluation> {
      const first = await run.request('evaluate', { episode, reason });
      if (!('judge' in first)) return first;
      const judgements = await Promise.all(first.judge.map((question) => judgeOf(judge).answer(question, signal)));
      const second = await run.request('evaluate', { episode, reason, judgements });
      if ('judge' in second) throw new OutsideFailure('BadEnvironment', 'evaluate: asks the judge a second time');
      return second;
    },
    async close() {
      closed();
      await run.request('close', { episode });
    },
  };
}

async function ask(user: SimulatedUser | undefined, turn: Parameters<SimulatedUser['speak']>[0]): Promise<UserMessage> {
  if (!user) {
    throw new OutsideFailure(
      'BadEnvironment',
      'the environment asks for a simulated user, and target.user names none; add it',
    );
  }
  return user.speak(turn);
}

function judgeOf(judge: Judge | undefined): Judge {
  if (judge) return judge;
  throw new OutsideFailure('BadEnvironment', 'the environment asks for a judge, and target.judge names none; add it');
}

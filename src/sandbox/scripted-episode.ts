/** Scripted episodes in a module. Invariant: an episode is a function of the module's text, the seed and the script. */
import type { AssistantMessage, Message } from '../domain/messages';
import type { EnvironmentModule, State } from './module';

/** The assistant's messages in turn, whatever is answered. */
export type Script = readonly AssistantMessage[];

export interface ScriptedEpisode {
  seed: number;
  /** The state that make() gave. */
  made: State;
  /** First messages. */
  start: Message[];
  /** The whole conversation. */
  messages: Message[];
  done: boolean;
  reward: number;
  breakdown: Record<string, number>;
}

/** Plays a script until the episode is done or the script has ended. */
export async function play(
  module: EnvironmentModule,
  { seed, script }: { seed: number; script: Script },
): Promise<ScriptedEpisode> {
  const made = await module.make(seed);
  const start = await module.start(made);
  const messages = [...start];
  let state = made;
  let done = false;
  for (const message of script) {
    if (done) break;
    const result = await module.step(state, message);
    messages.push(message, ...result.messages);
    ({ state, done } = result);
  }
  return { seed, made, start, messages, done, ...(await module.reward(state)) };
}

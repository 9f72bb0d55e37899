/** Scripted episodes in a module. Invariant: an episode is a function of the module's text, the seed and the script. */
import { createHash } from 'node:crypto';
import { callText, type AssistantMessage, type Message } from '../domain/messages';
import { quoted } from './text';
import { saidChars, type EnvironmentModule } from './module';

/** The assistant's messages in turn, whatever is answered; or what it says next to a conversation, undefined if nothing more. */
export type Script = readonly AssistantMessage[] | ((conversation: readonly Message[]) => AssistantMessage | undefined);

export interface ScriptedEpisode {
  seed: number;
  /** Hash of the state that make() gave: states may be large. */
  made: string;
  /** First messages. */
  start: Message[];
  /** The whole conversation. */
  messages: Message[];
  done: boolean;
  reward: number;
  breakdown: Record<string, number>;
  branch?: string | undefined;
}

/** Plays a script until the episode is done or the script has ended, at the latest after `maxSteps`. */
export async function play(
  module: EnvironmentModule,
  { seed, script, maxSteps = Infinity }: { seed: number; script: Script; maxSteps?: number },
): Promise<ScriptedEpisode> {
  let state = await module.make(seed);
  const made = createHash('sha256').update(JSON.stringify(state)).digest('hex');
  const start = await module.start(state);
  const messages = [...start];
  let [said, done] = [saidChars(start), false];
  for (let step = 0; step < maxSteps && !done; step += 1) {
    const message = typeof script === 'function' ? script(messages) : script[step];
    if (!message) break;
    const result = await module.step(state, message);
    said = saidChars(result.messages, said);
    messages.push(message, ...result.messages);
    ({ state, done } = result);
  }
  return { seed, made, start, messages, done, ...(await module.reward(state)) };
}

/** A conversation on one line of at most `most` characters, without the policy. */
export function told(messages: readonly Message[], most: number): string {
  const turns = messages.flatMap((message) => {
    if (message.role === 'system') return [];
    const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : [];
    const speaker = message.role === 'assistant' ? 'agent' : message.role;
    return `${speaker}: ${quoted([message.content, ...calls.map(callText)].filter(Boolean).join(' '))}`;
  });
  return quoted(turns.join(' | '), most);
}

/** Scripted episodes in a module, and the time that a self-test has for them. */
import { createHash } from 'node:crypto';
import { createLimit } from '../domain/concurrency';
import { type AssistantMessage, callText, type Message } from '../domain/messages';
import { quoted, SELF_TEST_EPISODE_CPU_MS } from './limits';
import { type EnvironmentModule, saidChars } from './module';

/** The assistant's messages in turn, whatever is answered; or what it says next to a conversation, undefined if nothing more. */
export type Script = readonly AssistantMessage[] | ((conversation: readonly Message[]) => AssistantMessage | undefined);

export interface ScriptedEpisode {
  seed: number;
  /** Hash of the state that make() gave: states may be large. */
  made: string;
  start: Message[];
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
export function conversationLine(messages: readonly Message[], most: number): string {
  const turns = messages.flatMap((message) => {
    if (message.role === 'system') return [];
    const calls = message.role === 'assistant' ? (message.toolCalls ?? []) : [];
    const speaker = message.role === 'assistant' ? 'agent' : message.role;
    return `${speaker}: ${quoted([message.content, ...calls.map(callText)].filter(Boolean).join(' '))}`;
  });
  return quoted(turns.join(' | '), most);
}

const PARALLEL = 8;

/** What has been played so far, of what is planned as far as that is known. */
export type TestProgress = (done: number, total: number) => void;

export interface Tested {
  module: EnvironmentModule;
  progress: TestProgress;
  cpuMs: number;
}

export class OutOfTime extends Error {}

export interface Stage {
  play(seed: number, script: Script, maxSteps?: number): Promise<ScriptedEpisode>;
  /** For each item, some at a time. */
  each<Item, Result>(items: readonly Item[], work: (item: Item) => Promise<Result>): Promise<Result[]>;
  plan(episodes: number): void;
  /** Episodes that were planned and need not be played. */
  skip(episodes: number): void;
}

/** Plays episodes as long as the module has time left, counted from here on. */
export function openStage({ module, progress, cpuMs, episodes }: Tested & { episodes: number }): Stage {
  let [done, total] = [0, episodes];
  const before = module.spent().cpuMs;
  const count = (episodes: number): void => {
    done += episodes;
    total = Math.max(total, done);
    progress(done, total);
  };
  const limit = createLimit(PARALLEL);
  return {
    async play(seed, script, maxSteps) {
      const spent = module.spent();
      const limit = Math.max(cpuMs, SELF_TEST_EPISODE_CPU_MS * total);
      if (spent.cpuMs - before > limit)
        throw new OutOfTime(timeFinding({ cpuMs: limit, episodes: done, functions: spent.functions }));
      const episode = await play(module, { seed, script, ...(maxSteps !== undefined && { maxSteps }) });
      count(1);
      return episode;
    },
    each: (items, work) => Promise.all(items.map((item) => limit(() => work(item)))),
    plan: (episodes) => void (total += episodes),
    skip: count,
  };
}

function timeFinding(o: {
  cpuMs: number;
  episodes: number;
  functions: ReturnType<EnvironmentModule['spent']>['functions'];
}): string {
  const slowest = o.functions.sort((a, b) => b.ms - a.ms).slice(0, 3);
  const told = slowest.map(({ name, calls, ms }) => `${name} ${(ms / 1000).toFixed(1)} s in ${calls} calls`);
  return (
    `the self-test ends unfinished: ${o.cpuMs / 1000} s of computing went into ${o.episodes} episodes ` +
    `(${told.join(', ')}): make these functions faster`
  );
}

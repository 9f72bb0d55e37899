/** Episodes in a module: their JSON state is all that they have. What the module does wrong breaks them and is never a reward. */
import { createHash } from 'node:crypto';
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { Environment, Episode } from '../domain/environment';
import type { AssistantMessage, Message } from '../domain/messages';
import { LISTED, seedOf, seedTasks } from '../domain/seeds';
import { EPISODE_CHARS } from './limits';
import { type EnvironmentModule, openModule } from './module';
import { SandboxError, unlessItFails } from './sandbox';

/** An episode of a seed. It breaks where the module says more than EPISODE_CHARS in it. */
export async function beginEpisode(module: EnvironmentModule, seed: number) {
  let chars = 0;
  const count = (messages: readonly Message[]): void => {
    for (const { content } of messages) chars += content.length;
    if (chars > EPISODE_CHARS)
      throw new SandboxError(`step: the episode's messages have ${chars} characters, more than ${EPISODE_CHARS}`);
  };
  let state = await module.make(seed);
  const start = await module.start(state);
  count(start);
  return {
    start,
    state: () => state,
    async step(message: AssistantMessage) {
      const result = await module.step(state, message);
      count(result.messages);
      state = result.state;
      return result;
    },
  };
}

/** Opens a module that was stored as one file. Rejects if the module cannot be loaded or does not describe itself. */
export async function openSandboxEnvironment({
  module: ref,
  store,
}: {
  module: ArtifactRef;
  store: ArtifactStore;
}): Promise<Environment> {
  const module = openModule({ source: (await store.read(ref)).toString('utf8') });
  try {
    return await sandboxEnvironment({ module, version: ref.sha256 });
  } catch (error) {
    await module.close();
    throw error;
  }
}

/** The environment over an open module, which it closes. `version` is the hash of the module's text. */
export async function sandboxEnvironment(o: { module: EnvironmentModule; version: string }): Promise<Environment> {
  const { module, version } = o;
  const description = await module.describe();
  const { tools, maxSteps } = description;
  const hasHints = (await module.exports()).includes('hint');

  async function reset(task: string): Promise<Episode> {
    const episode = await beginEpisode(module, seedOf(task));
    // None where it fails or is blank: rollouts that are not hinted need none, and the self-test finds it.
    const hint = hasHints ? await unlessItFails(module.hint(episode.state())) : undefined;
    let steps = 0;
    return {
      start: { messages: episode.start, tools, maxSteps, ...(hint !== undefined && { hint }) },
      async step(message) {
        const { messages, done, stopReason } = await episode.step(message);
        steps += 1;
        if (done) return { messages, done, stopReason: stopReason ?? 'user_stop' };
        return steps < maxSteps ? { messages, done } : { messages, done: true, stopReason: 'max_steps' };
      },
      async evaluate() {
        const state = episode.state();
        const [evaluation, reference] = await Promise.all([module.reward(state), module.reference(state)]);
        return { ...evaluation, reference };
      },
      close: async () => {},
    };
  }

  return {
    describe: async () => ({
      ...description,
      name: `synthesized-${version.slice(0, 12)}`,
      version,
      hasReference: true,
    }),
    tasks: async (split) => seedTasks(LISTED[split]).map((id) => ({ id, split })),
    reset: async ({ id }) => {
      try {
        return await reset(id);
      } catch (error) {
        if (error instanceof SandboxError) error.message = `task ${id}: ${error.message}`;
        throw error;
      }
    },
    close: () => module.close(),
  };
}

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
  { seed, script, maxSteps = Infinity }: { seed: number; script: Script; maxSteps?: number | undefined },
): Promise<ScriptedEpisode> {
  const episode = await beginEpisode(module, seed);
  const { start } = episode;
  const made = createHash('sha256').update(JSON.stringify(episode.state())).digest('hex');
  const messages = [...start];
  let done = false;
  for (let step = 0; step < maxSteps && !done; step += 1) {
    const message = typeof script === 'function' ? script(messages) : script[step];
    if (!message) break;
    const result = await episode.step(message);
    messages.push(message, ...result.messages);
    done = result.done;
  }
  return { seed, made, start, messages, done, ...(await module.reward(episode.state())) };
}

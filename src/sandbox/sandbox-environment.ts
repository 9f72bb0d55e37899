/**
 * A synthesized environment: a sandboxed module behind the Environment interface. An episode is its JSON state and
 * nothing else; what the module does wrong breaks the rollout and is never a reward.
 */
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { Environment, Episode } from '../domain/environment';
import { openModule, saidChars, type EnvironmentModule } from './module';
import { SandboxError } from './sandbox';
import { LISTED, seedOf, seedTasks } from './seeds';

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
  const hints = (await module.exports()).includes('hint');

  /** None where it fails or is blank: rollouts that are not hinted need none, and the self-test tells of it. */
  async function hintFor(state: unknown): Promise<string | undefined> {
    try {
      return await module.hint(state);
    } catch (error) {
      if (error instanceof SandboxError) return undefined;
      throw error;
    }
  }

  async function reset(task: string): Promise<Episode> {
    let state = await module.make(seedOf(task));
    const hint = hints ? await hintFor(state) : undefined;
    const start = { messages: await module.start(state), tools, maxSteps, ...(hint !== undefined && { hint }) };
    let [steps, said] = [0, saidChars(start.messages)];
    return {
      start,
      async step(message) {
        const { state: next, messages, done, stopReason } = await module.step(state, message);
        said = saidChars(messages, said);
        state = next;
        steps += 1;
        if (done) return { messages, done, stopReason: stopReason ?? 'user_stop' };
        return steps < maxSteps ? { messages, done } : { messages, done: true, stopReason: 'max_steps' };
      },
      async evaluate() {
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

/**
 * The interface of an environment module (docs/synthesis.md), checked at the sandbox's border: what passes keeps the contract and is of limited size,
 * anything else is a SandboxError that names function and field; and episodes in a module: their JSON state is all that they have, and what the module
 * does wrong breaks them and is never a reward.
 */
import { z } from 'zod';
import {
  branchSchema,
  referenceSchema,
  rewardSchema,
  stopReasonSchema,
  type Environment,
  type Episode,
} from '../domain/environment';
import { describeIssue } from '../domain/issues';
import { messageSchema, toolSchema, type AssistantMessage, type Message } from '../domain/messages';
import {
  DESCRIPTION_CHARS,
  isUnfit,
  MORE_MESSAGES,
  MOST_ANSWERS,
  MOST_ENTRIES,
  MOST_EXPORTS,
  MOST_STEPS,
  MOST_TOOLS,
  NAME_CHARS,
  quoted,
  QUOTED_CHARS,
  TEXT_CHARS,
  EPISODE_CHARS,
} from './limits';
import { openSandbox, SandboxError, type SandboxOptions } from './sandbox';
import { createHash } from 'node:crypto';
import type { ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { LISTED, seedOf, seedTasks } from '../domain/seeds';

/** Anything that survives JSON; the host never looks into it. */
type State = unknown;

/** Checks the length before the items, so that a million of them are not parsed. */
const list = <Item extends z.ZodType>(item: Item, most: number) =>
  z
    .custom<unknown[]>(Array.isArray, 'a list is needed')
    .refine((items) => items.length <= most, { error: `more than ${most} of them`, abort: true })
    .pipe(z.array(item));
const record = <Value extends z.ZodType>(value: Value, most: number) =>
  z
    .custom<object>((v) => typeof v === 'object' && v !== null && !Array.isArray(v), 'an object is needed')
    .refine((entries) => Object.keys(entries).length <= most, { error: `more than ${most} entries`, abort: true })
    .pipe(z.record(z.string().max(NAME_CHARS), value));

const fit = z
  .string()
  .max(TEXT_CHARS)
  .refine((t) => !isUnfit(t), 'it has control characters or half a surrogate pair: write plain text');
const text = fit.refine((t) => t.trim() !== '', 'it is blank: say something');
const state = z.unknown().refine((v) => v !== undefined && v !== null, 'a state is needed');
const schema = z.custom<object>((v) => typeof v === 'object' && v !== null && !Array.isArray(v), 'a schema is needed');

const incoming = z.discriminatedUnion('role', [
  z.object({ role: z.literal('user'), content: text }),
  z.object({ role: z.literal('tool'), toolCallId: z.string().max(NAME_CHARS), content: text }),
]);
const assistant = messageSchema.options[2].extend({
  content: fit,
  toolCalls: list(messageSchema.options[2].shape.toolCalls.unwrap().element, MOST_ENTRIES).optional(),
});
const script = list(assistant, MOST_STEPS);
const tool = toolSchema.extend({
  name: fit.min(1).max(NAME_CHARS),
  description: fit,
  parameters: schema,
  outputSchema: schema.optional(),
});
const [action, fact] = [referenceSchema.shape.actions.element, referenceSchema.shape.tell.element];

const results = {
  exports: list(z.string(), MOST_EXPORTS).transform((names) => names.map((name) => quoted(name, NAME_CHARS))),
  describe: z.strictObject({
    policy: fit,
    tools: list(tool, MOST_TOOLS).refine(
      (tools) => new Set(tools.map(({ name }) => name)).size === tools.length,
      'two tools have the same name',
    ),
    maxSteps: z.number().int().positive().max(MOST_STEPS),
  }),
  make: state,
  start: list(
    z.discriminatedUnion('role', [
      z.object({ role: z.literal('system'), content: text }),
      z.object({ role: z.literal('user'), content: text }),
    ]),
    MORE_MESSAGES,
  ).refine((messages) => messages.length > 0, 'a message is needed'),
  step: z.strictObject({
    state,
    messages: list(incoming, MOST_ANSWERS),
    done: z.boolean(),
    stopReason: stopReasonSchema.optional(),
  }),
  reward: z.strictObject({
    reward: rewardSchema,
    breakdown: record(z.number(), MOST_ENTRIES),
    branch: branchSchema.optional(),
  }),
  reference: z.object({ actions: list(action, MOST_ENTRIES), tell: list(fact, MOST_ENTRIES) }),
  solve: script.refine((messages) => messages.length > 0, 'a message is needed'),
  shortcuts: record(script, MOST_ENTRIES),
};
type Results = { [Name in keyof typeof results]: z.infer<(typeof results)[Name]> };

/** Functions that every module exports; `shortcuts` is optional, any other is ignored. */
const REQUIRED_EXPORTS = ['describe', 'make', 'start', 'step', 'reward', 'reference', 'solve'] as const;

export function missingExports(names: readonly string[]): string | undefined {
  const missing = REQUIRED_EXPORTS.filter((name) => !names.includes(name));
  if (missing.length === 0) return undefined;
  return `the module does not export ${missing.join(', ')}: export a function under each name`;
}

export type EnvironmentModule = ReturnType<typeof openModule>;

export function openModule(options: { source: string } & SandboxOptions) {
  const sandbox = openSandbox(options);
  async function call<Name extends keyof Results>(name: Name, args: unknown[]): Promise<Results[Name]> {
    const result = await sandbox.call(name, args);
    const parsed = results[name].safeParse(result);
    if (parsed.success) return parsed.data as Results[Name];
    const { field, problem } = describeIssue(parsed.error, result);
    const path = quoted(['result', field].filter(Boolean).join('.'), QUOTED_CHARS / 2);
    throw new SandboxError(`${name}: ${path}: ${quoted(problem, QUOTED_CHARS / 2)}`);
  }
  return {
    cpuMs: sandbox.cpuMs,
    close: sandbox.close,
    exports: () => call('exports', []),
    async describe() {
      const description = await call('describe', []);
      const { length } = JSON.stringify(description);
      if (length <= DESCRIPTION_CHARS) return description;
      throw new SandboxError(`describe: ${length} characters, more than ${DESCRIPTION_CHARS}`);
    },
    make: (seed: number) => call('make', [seed]),
    start: (state: State): Promise<Message[]> => call('start', [state]),
    async step(state: State, message: AssistantMessage) {
      const result = await call('step', [state, message]);
      const wrong = wrongAnswer(result, message);
      if (wrong) throw new SandboxError(`step: ${wrong}`);
      return result;
    },
    reward: (state: State) => call('reward', [state]),
    reference: (state: State) => call('reference', [state]),
    solve: (seed: number): Promise<AssistantMessage[]> => call('solve', [seed]),
    /** Scripted policies that must not pay, by name: always and never doing what the environment trains. */
    shortcuts: (seed: number): Promise<Record<string, AssistantMessage[]>> => call('shortcuts', [seed]),
  };
}

export async function withModule<Result>(
  source: string,
  use: (module: EnvironmentModule) => Promise<Result>,
): Promise<Result> {
  const module = openModule({ source });
  try {
    return await use(module);
  } finally {
    await module.close();
  }
}

/** Returns the defect of a step's answer: each call needs one answer under its id unless the episode ends, and an episode that continues needs a message. */
function wrongAnswer({ messages, done }: Results['step'], { toolCalls = [] }: AssistantMessage): string | undefined {
  const open = toolCalls.map(({ id }) => id);
  if (messages.length > open.length + MORE_MESSAGES)
    return `${messages.length} messages answer one: ${MORE_MESSAGES} and one for each call are allowed`;
  for (const message of messages) {
    if (message.role !== 'tool') continue;
    const at = open.indexOf(message.toolCallId);
    if (at < 0)
      return `a tool message answers "${quoted(message.toolCallId)}", which is no open call: answer each call once, by its id`;
    open.splice(at, 1);
  }
  if (done) return undefined;
  if (open.length > 0)
    return `call "${quoted(open[0] ?? '')}" is not answered: answer each call with a tool message that has its id`;
  return messages.length > 0 ? undefined : 'nothing is said and the episode continues: let the user answer, or end it';
}

/** Begins the episode of a seed. It fails if the module's messages exceed EPISODE_CHARS. */
async function beginEpisode(module: EnvironmentModule, seed: number) {
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

  async function reset(task: string): Promise<Episode> {
    const episode = await beginEpisode(module, seedOf(task));
    let steps = 0;
    return {
      start: { messages: episode.start, tools, maxSteps },
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
    // Its version is the hash of its whole content.
    appearance: { task: 'fixed' },
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

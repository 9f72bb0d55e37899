/**
 * The interface of an environment module (docs/synthesis.md): pure functions over JSON state, checked at the sandbox's border. Invariant:
 * what passes here keeps the environment's contract; anything else is a SandboxError that names the function and the field.
 */
import { z } from 'zod';
import { referenceSchema, stopReasonSchema } from '../domain/environment';
import { messageSchema, toolSchema, type AssistantMessage, type Message } from '../domain/messages';
import { openSandbox, SandboxError, type SandboxOptions } from './sandbox';

/** Anything that survives JSON; the host never looks into it. */
export type State = unknown;

const text = z.string().min(1);
const incoming = z.discriminatedUnion('role', [
  z.object({ role: z.literal('user'), content: text }),
  z.object({ role: z.literal('tool'), toolCallId: z.string(), content: text }),
]);
const assistantMessages = z.array(messageSchema.options[2]);

const results = {
  describe: z.strictObject({ policy: text, tools: z.array(toolSchema).min(1), maxSteps: z.number().int().positive() }),
  make: z.unknown().refine((state) => state !== undefined && state !== null, 'a state is needed'),
  start: z.array(z.discriminatedUnion('role', [messageSchema.options[0], messageSchema.options[1]])).min(1),
  step: z.strictObject({
    state: z.unknown(),
    messages: z.array(incoming),
    done: z.boolean(),
    stopReason: stopReasonSchema.optional(),
  }),
  reward: z.strictObject({ reward: z.number().min(0).max(1), breakdown: z.record(z.string(), z.number()) }),
  reference: referenceSchema,
  solve: assistantMessages.min(1),
  shortcuts: z.record(z.string(), assistantMessages),
};
type Results = { [Name in keyof typeof results]: z.infer<(typeof results)[Name]> };

/** Functions that every module exports; `shortcuts` is optional. */
export const REQUIRED_EXPORTS = ['describe', 'make', 'start', 'step', 'reward', 'reference', 'solve'] as const;

/** A loaded module. All methods reject with SandboxError if the module breaks its contract. */
export interface EnvironmentModule {
  exports(): Promise<string[]>;
  describe(): Promise<Results['describe']>;
  make(seed: number): Promise<State>;
  start(state: State): Promise<Message[]>;
  step(state: State, message: AssistantMessage): Promise<Results['step']>;
  reward(state: State): Promise<Results['reward']>;
  reference(state: State): Promise<Results['reference']>;
  /** The reference solution of a seed: the assistant's messages in turn. */
  solve(seed: number): Promise<AssistantMessage[]>;
  /** Scripted policies that must not pay, by name: always and never doing what the environment trains. */
  shortcuts(seed: number): Promise<Results['shortcuts']>;
  close(): Promise<void>;
}

/** Loads a module's text into a sandbox of its own. */
export function openModule(options: { source: string } & SandboxOptions): EnvironmentModule {
  const sandbox = openSandbox(options);
  async function call<Name extends keyof Results>(name: Name, args: unknown[]): Promise<Results[Name]> {
    const parsed = results[name].safeParse(await sandbox.call(name, args));
    if (parsed.success) return parsed.data as Results[Name];
    const [issue] = parsed.error.issues;
    throw new SandboxError(`${name}: ${['result', ...(issue?.path ?? [])].join('.')}: ${issue?.message}`);
  }
  return {
    exports: () => sandbox.exports(),
    describe: () => call('describe', []),
    make: (seed) => call('make', [seed]),
    start: (state) => call('start', [state]),
    step: (state, message) => call('step', [state, message]),
    reward: (state) => call('reward', [state]),
    reference: (state) => call('reference', [state]),
    solve: (seed) => call('solve', [seed]),
    shortcuts: (seed) => call('shortcuts', [seed]),
    close: () => sandbox.close(),
  };
}

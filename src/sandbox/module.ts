/**
 * The interface of an environment module (docs/synthesis.md), checked at the sandbox's border: what passes keeps the
 * contract and is of limited size, anything else is a SandboxError that names function and field.
 */
import { z } from 'zod';
import { branchSchema, referenceSchema, stopReasonSchema } from '../domain/environment';
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
} from './limits';
import { openSandbox, SandboxError, type SandboxOptions } from './sandbox';

/** Anything that survives JSON; the host never looks into it. */
type State = unknown;

/** Counted before the items are looked at: a million of them must not be. */
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
    reward: z.number().min(0).max(1),
    breakdown: record(z.number(), MOST_ENTRIES),
    branch: branchSchema.optional(),
  }),
  reference: z.object({ actions: list(action, MOST_ENTRIES), tell: list(fact, MOST_ENTRIES) }),
  solve: script.refine((messages) => messages.length > 0, 'a message is needed'),
  shortcuts: record(script, MOST_ENTRIES),
  hint: text,
};
type Results = { [Name in keyof typeof results]: z.infer<(typeof results)[Name]> };

/** Functions that every module exports; `shortcuts` and `hint` are optional, any other is left alone. */
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
    const parsed = results[name].safeParse(await sandbox.call(name, args));
    if (parsed.success) return parsed.data as Results[Name];
    const [issue] = parsed.error.issues;
    const path = quoted(['result', ...(issue?.path ?? [])].join('.'), QUOTED_CHARS / 2);
    throw new SandboxError(`${name}: ${path}: ${quoted(issue?.message ?? '', QUOTED_CHARS / 2)}`);
  }
  return {
    spent: sandbox.spent,
    close: sandbox.close,
    /** Names that the module exports. */
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
    /** What kind of thing to do in an instance, for rollouts that are hinted. */
    hint: (state: State) => call('hint', [state]),
  };
}

/** What `use` makes of a module, which is closed then. */
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

/** Each call is answered once, under its id, unless the episode ends; and an episode that goes on says something. */
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
  return messages.length > 0 ? undefined : 'nothing is said and the episode goes on: let the user answer, or end it';
}

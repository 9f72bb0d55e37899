/**
 * A small environment for the engine's tests: the agent must `add` up to the task's number and then say it. What may go wrong in
 * an environment can be made to go wrong.
 */
import type { Environment, StepResult } from '../../src/domain/environment';
import type { Message, ToolSchema } from '../../src/domain/messages';
import type { TurnRequest } from '../../src/policy/wire';
import { scriptedPolicy, turnOf, type ScriptedPolicy } from './scripted-policy';

const tool = (name: string, readOnlyHint: boolean): ToolSchema => ({
  name,
  description: `${name} it`,
  parameters: { type: 'object', properties: {} },
  annotations: { readOnlyHint },
});

export interface CountingOptions {
  /** Called at the start of every step; may throw. */
  beforeStep?: (task: string) => void | Promise<void>;
  reward?: (count: number, wanted: number) => number;
  maxSteps?: number;
  /** Texts of system messages before the user's. */
  system?: string[];
}

export interface CountingEnvironment extends Environment {
  episodes: { opened: number; closed: number; atOnce: number };
}

/** Task "n-3" wants three adds. */
export function countingEnvironment({
  beforeStep,
  reward,
  maxSteps = 8,
  system = [],
}: CountingOptions = {}): CountingEnvironment {
  const tools = [tool('look', true), tool('add', false)];
  const episodes = { opened: 0, closed: 0, atOnce: 0 };
  return {
    episodes,
    describe: async () => ({ name: 'counting', version: '1', policy: 'count', tools, maxSteps, hasReference: false }),
    tasks: async (split) => [{ id: split === 'train' ? 'n-1' : 'n-2', split }],
    reset: async ({ id }) => {
      const wanted = Number(id.slice(2));
      let count = 0;
      episodes.opened++;
      episodes.atOnce = Math.max(episodes.atOnce, episodes.opened - episodes.closed);
      return {
        start: {
          messages: [...system.map((content): Message => ({ role: 'system', content })), { role: 'user', content: id }],
          tools,
          maxSteps,
        },
        async step({ toolCalls = [] }): Promise<StepResult> {
          await beforeStep?.(id);
          if (toolCalls.length === 0)
            return { messages: [{ role: 'user', content: 'bye' }], done: true, stopReason: 'user_stop' };
          count += toolCalls.filter(({ name }) => name === 'add').length;
          return {
            messages: toolCalls.map((call) => ({ role: 'tool', toolCallId: call.id, content: `${count}` })),
            done: false,
          };
        },
        evaluate: async () => ({
          reward: reward ? reward(count, wanted) : count === wanted ? 1 : 0,
          breakdown: { count },
        }),
        close: async () => void episodes.closed++,
      };
    },
    close: async () => undefined,
  };
}

/** Looks once, adds up, says so; `before` is called with every turn's request and may throw. */
export function countingPolicy(before?: (request: TurnRequest) => void | Promise<void>): ScriptedPolicy {
  return scriptedPolicy(async (request) => {
    await before?.(request);
    const wanted = Number(request.messages.find(({ role }) => role === 'user')!.content.slice(2));
    const turn = turnOf(request.messages);
    if (turn > wanted) return { role: 'assistant', content: 'done' };
    const name = turn === 0 ? 'look' : 'add';
    return { role: 'assistant', content: '', toolCalls: [{ id: `call_${turn}`, name, arguments: {} }] };
  });
}

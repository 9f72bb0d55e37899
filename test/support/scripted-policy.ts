/**
 * A policy client without a model: answers are a function of the conversation. Token ids are the characters of a rendering in
 * which every turn continues the one before, as with a real server.
 */
import type { AssistantMessage, Message } from '../../src/domain/messages';
import type { PolicyClient } from '../../src/policy/client';
import type { TurnRequest } from '../../src/policy/wire';

const ids = (text: string): number[] => [...text].map((character) => character.codePointAt(0)!);
const render = (message: Message): string => `${JSON.stringify(message)}\n`;

export interface ScriptedPolicy extends PolicyClient {
  /** Turns sampled so far. */
  turns: number;
}

/** `answer` may throw what a policy server would. */
export function scriptedPolicy(
  answer: (request: TurnRequest) => AssistantMessage | Promise<AssistantMessage>,
): ScriptedPolicy {
  const client: ScriptedPolicy = {
    turns: 0,
    unload: () => Promise.resolve(),
    async sample(request) {
      client.turns++;
      const message = await answer(request);
      const tokenIds = ids(render(message));
      return {
        message,
        finishReason: message.toolCalls ? 'tool_calls' : 'stop',
        promptIds: ids(request.messages.map(render).join('')),
        tokenIds,
        logprobs: tokenIds.map((id) => -id / 1000),
      };
    },
    complete: () => Promise.reject(new Error('it has turns alone')),
    likeliest: async () => [],
    reachable: async () => true,
    close: () => undefined,
  };
  return client;
}

/** Returns the number of the policy's turns in this conversation. */
export const turnOf = (messages: Message[]): number => messages.filter(({ role }) => role === 'assistant').length;

/** From an environment's spec to the models that it needs beside the policy. Invariant: an answer holds words or calls, never nothing. */
import type { ChatModel } from '../domain/endpoints';
import type { Message } from '../domain/messages';
import { toAssistantMessage } from '../policy/wire';
import { openChatModel } from './chat-model';
import type { Judge, Partners, SimulatedUser } from './types';

type Models = { user?: ChatModel | undefined; judge?: ChatModel | undefined };

/** Throws BadInput if a key's variable is not set. */
export function openPartners({ user, judge }: Models): Partners {
  return { ...(user && { user: openUser(user) }), ...(judge && { judge: openJudge(judge) }) };
}

/**
 * Model and sampling, not the address: a server that moves to another port must not make every rollout anew. Two models of one name are
 * told apart by serving them under different names.
 */
const idOf = ({ model, temperature, topP, maxTokens }: ChatModel) =>
  `${model} (temperature ${temperature}, top-p ${topP}, ${maxTokens} tokens)`;

function openUser(spec: ChatModel): SimulatedUser {
  const model = openChatModel('user', spec);
  return {
    id: idOf(spec),
    async speak(turn) {
      const reply = await model.ask(turn);
      const { content, toolCalls } = toAssistantMessage(reply.content, reply.calls);
      // To the policy a malformed call is a mistake of its own; from the user it would be nonsense that the agent has to hear.
      if ((toolCalls?.length ?? 0) < reply.calls.length) {
        throw model.unusable('a call with arguments that are no JSON object');
      }
      if (!toolCalls && !content.trim()) throw model.unusable(NOTHING);
      return { role: 'user', content, ...(toolCalls && { toolCalls: named(toolCalls, turn.messages) }) };
    },
  };
}

/** A judge's seed is always the same: what is asked determines what is answered. */
const JUDGE_SEED = 0;

function openJudge(spec: ChatModel): Judge {
  const model = openChatModel('judge', spec);
  return {
    id: idOf(spec),
    async answer(question, outside) {
      const reply = await model.ask({ messages: question, tools: [], seed: JUDGE_SEED, ...outside });
      if (!reply.content.trim()) throw model.unusable(NOTHING);
      return reply.content;
    },
  };
}

const NOTHING = 'an empty answer: no words and no calls';

/** Servers may give every turn's first call the same id; and the agent's calls are named `call_n` in the same conversation. */
function named<Call extends { id: string }>(calls: Call[], before: Message[]): Call[] {
  const earlier = before.reduce((n, m) => n + (m.role === 'assistant' ? (m.toolCalls?.length ?? 0) : 0), 0);
  return calls.map((call, n) => ({ ...call, id: `user_call_${earlier + n}` }));
}
